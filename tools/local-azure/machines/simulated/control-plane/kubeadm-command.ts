import { execFile } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments, stringify } from "yaml";

import type { Body } from "../api";

const run = promisify(execFile);

/** As kubeadm reads it: yes and on without quotes are no text. */
const yaml = { version: "1.1" } as const;

interface KubeadmArg {
  readonly name: string;
  readonly value: string;
}

export interface NodeRegistration {
  readonly name?: string;
  readonly taints?: readonly { key: string; value?: string; effect: string }[];
  readonly kubeletExtraArgs?: readonly KubeadmArg[];
}

const documentsOf = (text: string): Body[] =>
  parseAllDocuments(text, yaml)
    .map((document) => document.toJS() as Body | null)
    .filter((document): document is Body => document !== null);

/** One kubeadm object out of a file of several. */
function kindOf(text: string, kind: string): Body {
  const found = documentsOf(text).find((document) => document.kind === kind);
  if (found === undefined) {
    throw new Error(`kubeadm's configuration has no ${kind}`);
  }
  return found;
}

export const nodeRegistrationOf = (
  text: string,
  kind: "InitConfiguration" | "JoinConfiguration",
): NodeRegistration => (kindOf(text, kind).nodeRegistration ?? {}) as NodeRegistration;

/** The name that every kubeconfig of the cluster leads to, as `name:6443`. */
export const endpointOf = (text: string): string =>
  `${kindOf(text, "ClusterConfiguration").controlPlaneEndpoint ?? ""}`;

/**
 * kubeadm's configuration of a machine, for a machine that is a folder of this host: paths are
 * below `root`. `extraSan` is an address more that the API's certificate is valid for.
 */
function belowRoot(text: string, root: string, extraSan?: string): string {
  return documentsOf(text)
    .map((document) => {
      const {
        patches,
        discovery,
        certificatesDir = "/etc/kubernetes/pki",
        apiServer = {},
        kind,
      } = document;
      const below = {
        ...document,
        ...(patches?.directory && { patches: { directory: `${root}${patches.directory}` } }),
        ...(discovery?.file && {
          discovery: { file: { kubeConfigPath: `${root}${discovery.file.kubeConfigPath}` } },
        }),
        ...(kind === "ClusterConfiguration" && {
          certificatesDir: `${root}${certificatesDir}`,
          ...(extraSan && {
            apiServer: { ...apiServer, certSANs: [...(apiServer.certSANs ?? []), extraSan] },
          }),
        }),
      };
      return stringify(below, yaml);
    })
    .join("---\n");
}

/** The real kubeadm command, which writes nothing outside `root`. */
export class KubeadmCommand {
  constructor(
    private readonly binary: string,
    private readonly root: string,
  ) {}

  private get manifests(): string {
    return path.join(this.root, "etc/kubernetes/manifests");
  }

  manifest(component: string): string {
    return fs.readFileSync(path.join(this.manifests, `${component}.yaml`), "utf8");
  }

  /** Certificates, kubeconfigs and static pods: all of `init` that happens before the API is up. */
  async prepare(configuration: string): Promise<void> {
    fs.mkdirSync(this.manifests, { recursive: true, mode: 0o700 });
    await this.sign(configuration);
    await this.writeManifests(configuration);
  }

  /** Makes all certificates and kubeconfigs anew: `certs renew` finds none that are not in /etc/kubernetes. */
  async renew(configuration: string): Promise<void> {
    const folder = path.join(this.root, "etc/kubernetes");
    for (const name of fs.readdirSync(folder, { recursive: true, encoding: "utf8" })) {
      const isLeaf =
        /^pki\/.*\.(crt|key)$/.test(name) && !/ca\.(crt|key)$|sa\.(pub|key)$/.test(name);
      if (isLeaf || name.endsWith(".conf")) fs.rmSync(path.join(folder, name));
    }
    await this.sign(configuration);
  }

  private async sign(configuration: string): Promise<void> {
    const certificates = this.write(
      "init-certificates.yaml",
      belowRoot(configuration, this.root, "127.0.0.1"),
    );
    const config = this.write("init.yaml", belowRoot(configuration, this.root));
    await this.phase(["certs", "all", "--config", certificates]);
    await this.phase([
      "kubeconfig",
      "all",
      "--config",
      config,
      "--kubeconfig-dir",
      path.join(this.root, "etc/kubernetes"),
    ]);
  }

  /** The static pods of etcd and the control plane. */
  async writeManifests(configuration: string): Promise<void> {
    const config = this.write("init.yaml", belowRoot(configuration, this.root));
    // Not dry, this phase would write to /etc/kubernetes/manifests whatever its flags say.
    await this.phase(["etcd", "local", "--config", config, "--dry-run"]);
    await this.phase(["control-plane", "all", "--config", config, "--dry-run"]);
  }

  /** What `init` makes through the API. */
  async finish(kubeconfig: string, addOns: "all" | "coredns"): Promise<void> {
    const flags = ["--config", path.join(this.root, "init.yaml"), "--kubeconfig", kubeconfig];
    await this.upload(kubeconfig);
    await Promise.all([
      this.phase(["bootstrap-token", "--skip-token-print", ...flags]),
      this.phase(["addon", addOns, ...flags]),
    ]);
  }

  async upgradeCoreDns(kubeconfig: string): Promise<void> {
    const config = path.join(this.root, "init.yaml");
    await this.phase(["addon", "coredns", "--config", config, "--kubeconfig", kubeconfig]);
  }

  /** Gives the cluster the configuration of which the manifests were written last. */
  async upload(kubeconfig: string): Promise<void> {
    const config = path.join(this.root, "init.yaml");
    const flags = ["--config", config, "--kubeconfig", kubeconfig];
    await this.phase(["upload-config", "all", ...flags]);
  }

  /**
   * An administrator's short-lived kubeconfig, as a control plane makes one with the CA it holds.
   */
  mintAdministrator(configuration: string, machine: string): Promise<string> {
    const config = this.write("init.yaml", belowRoot(configuration, this.root));
    return this.kubeadm([
      "kubeconfig",
      "user",
      "--config",
      config,
      "--client-name",
      `zoned:${machine}`,
      "--org",
      "kubeadm:cluster-admins,system:bootstrappers:kubeadm:default-node-token",
      "--validity-period",
      "2h",
    ]);
  }

  /** Fails with kubeadm's own words if it would not take this configuration. */
  async validate(configuration: string): Promise<void> {
    await this.kubeadm([
      "config",
      "validate",
      "--config",
      this.write("validate.yaml", belowRoot(configuration, this.root)),
    ]);
  }

  private phase(args: readonly string[]): Promise<string> {
    return this.kubeadm(["init", "phase", ...args]);
  }

  private async kubeadm(args: readonly string[]): Promise<string> {
    try {
      const { stdout } = await run(this.binary, [...args], {
        env: { ...process.env, KUBEADM_INIT_DRYRUN_DIR: this.manifests },
        maxBuffer: 16 << 20,
      });
      return stdout;
    } catch (error) {
      const { stderr = "", message } = error as Error & { stderr?: string };
      throw new Error(
        `kubeadm ${args.filter((arg) => !arg.startsWith("/")).join(" ")}: ${stderr.trim() || message}`,
        { cause: error },
      );
    }
  }

  private write(name: string, text: string): string {
    const file = path.join(this.root, name);
    fs.mkdirSync(this.root, { recursive: true, mode: 0o700 });
    fs.writeFileSync(file, text, { mode: 0o600 });
    return file;
  }
}
