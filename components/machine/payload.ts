import { readFileSync } from "node:fs";
import { join } from "node:path";

import { RunError } from "@pulumi/pulumi/errors";

import { PayloadFile } from "../kubeadm/payload-file";

/** Text of a file in `cloud-init/`. */
export const cloudInitText = (path: string): string =>
  readFileSync(join(__dirname, "../../cloud-init", path), "utf8");

/** A script of `cloud-init/`, for root alone. */
export const scriptFile = (name: string): PayloadFile => ({
  path: `/opt/zoned/${name}`,
  mode: "0700",
  content: cloudInitText(name),
});

/**
 * A systemd unit of `cloud-init/units/`.
 *
 * @param values of the names that stand as `@NAME@` in it
 */
export const unitFile = (name: string, values: Record<string, string> = {}): PayloadFile => ({
  path: `/etc/systemd/system/${name}`,
  mode: "0644",
  content: cloudInitText(`units/${name}`).replace(/@([A-Z]+)@/g, (_, key: string) => values[key]!),
});

/** The line of bootstrap.sh after which its payload follows; bash never reads that far. */
const marker = "#--- payload ---";

/** Azure's ceiling on the custom script extension's `script`, counted after base64. */
const maxScriptBytes = 256 * 1024;

/**
 * What the step does besides:
 * - `registries`: it installs the program by which the kubelet logs in to registries;
 * - `registry-credentials`: it keeps those among its files, which go where they come no more;
 * - `snapshots`: the machine saves snapshots of etcd, by what is among its files;
 * - `repair`: the machine may restart workers that are not Ready, by what is among its files;
 * - `cas`: a member takes the CAs of the payload, since its cluster has had others than its first ones;
 * - `restart-pods`: it restarts the pods of the namespaces `kube-*`, as the last one of an update that
 *   adds CAs;
 * - `rewrite-secrets`: it encrypts all Secrets anew, as the last one of an update that changes their key;
 * - `forget-account-keys`: a control plane that has forgotten the keys of service accounts that sign no more
 *   goes on without them.
 */
export type Task =
  | "registries"
  | "registry-credentials"
  | "snapshots"
  | "repair"
  | "cas"
  | "restart-pods"
  | "rewrite-secrets"
  | "forget-account-keys";

/** All that a machine's bootstrap step gets. It holds keys: protected settings only. */
export interface Payload {
  readonly machine: string;
  readonly role: "control-plane" | "worker";
  /** Azure's id of the one machine that may initialize the cluster; control planes only. */
  readonly initialControlPlane?: string;
  readonly apiName: string;
  readonly apiPort: number;
  /** Of the public balancer, where the API's name means this very machine; control planes only. */
  readonly apiAddress?: string;
  /**
   * Whether the balancer is an internal one, which drops what it would send back to its sender; control
   * planes only.
   */
  readonly isApiPrivate?: boolean;
  readonly kubernetesVersion: string;
  /** Hash over what kubeadm configures; a member that has another one is upgraded. */
  readonly configuration: string;
  /** Hash over the part of it that the whole cluster shares; control planes only. */
  readonly clusterConfiguration?: string;
  readonly tasks: readonly Task[];
  /** How long pods may take to leave the machine before it is upgraded. */
  readonly drainMinutes: number;
  readonly nodeAddress: string;
  /** Of the kubelet. The step calculates a worker's kubeReserved by it. */
  readonly maxPods: number;
  /** Hash over what decides which pods the kubelet takes; a member that has another one is drained. */
  readonly room: string;
  /** Kernel modules that must be there, now and after every boot. */
  readonly modules: readonly string[];
  /**
   * Whether the step waits until the node is Ready, and not only until its kubelet reports.
   *
   * @default true; without a pod network of this program's own nobody knows when nodes can be
   */
  readonly awaitsReady?: boolean;
  /** Whether its OS disk is blank on another host; workers only. */
  readonly isEphemeral?: boolean;
  /** The snapshot that the initial control plane initializes the cluster with: a name, or `latest`. */
  readonly restoredFrom?: string;
  readonly files: readonly PayloadFile[];
}

/** bootstrap.sh with each file that it sources in its place: a machine gets one file. */
export const bootstrapText = (): string =>
  cloudInitText("bootstrap.sh")
    .replace(/^parts=.*\n/m, "")
    .replace(/^\. "\$parts\/(\w+\.sh)"\n/gm, (_, part: string) =>
      cloudInitText(`bootstrap/${part}`),
    );

/** What the custom script extension runs on one machine: bootstrap.sh, and its payload. */
export function bootstrapScript(payload: Payload): string {
  const text = `${bootstrapText()}${JSON.stringify(payload)}\n`;
  const bytes = Buffer.from(text).toString("base64").length;
  if (bytes > maxScriptBytes) {
    const largest = [...payload.files].sort((a, b) => b.content.length - a.content.length)[0];
    throw new RunError(
      `the bootstrap step of ${payload.machine} is ${bytes} bytes in base64, and Azure takes at most ` +
        `${maxScriptBytes}; its largest file is ${largest?.path} with ${largest?.content.length} ` +
        "characters: shorten what settings have in it, above all kubeadm.patches, registryCredentials, httpProxy.ca and entra.ca",
    );
  }
  return text;
}

/** The payload inside a script that `bootstrapScript` made. */
export function parsePayload(script: string): Payload {
  const start = script.indexOf(`\n${marker}\n`);
  if (start < 0) {
    throw new Error(
      `this script has no line "${marker}", so it is not a bootstrap step of this program: ` +
        "send what bootstrapScript returns",
    );
  }
  try {
    return JSON.parse(script.slice(start + marker.length + 2)) as Payload;
  } catch (error) {
    // The parser's message may quote the document, which holds private keys.
    throw new Error(`what follows the line "${marker}" is not JSON`, { cause: error });
  }
}
