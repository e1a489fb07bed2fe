import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

import { writeWhole } from "../../../../shared/files";
import type { VirtualMachine } from "../../machines";
import { Supervisor } from "../../supervisor";
import { type Api, type ApiServer, type Body, strategicPatch, unlessStatus } from "../api";
import { freePort } from "../control-plane/ports";
import { podPath } from "./kubelets";
import { passesReadinessProbe, statusOfProcess } from "./process-status";

/** In the name of its image. */
export const controllerManagerImage = "cloud-controller-manager";

/** As a kubelet asks for it, and renewed as early. */
const tokenSeconds = 3607;
const renewedAfterMs = 30 * 60_000;

export interface ControllerManagerOptions {
  /** Azure's own program. */
  readonly program: string;
  /** File of the authority that the local Azure identifies itself by. */
  readonly authority: string;
  /** For what its pods would have, and for their logs. */
  readonly folder: string;
  readonly vmOf: (name: string) => VirtualMachine | undefined;
  /** The API as the kubelet of this machine sees it, if it has joined. */
  readonly kubeletOf: (name: string) => Api | undefined;
  readonly log: (message: string) => void;
}

interface Process {
  /** Its pod's. */
  readonly name: string;
  readonly port: number;
  /** When its token was issued. */
  renewed: number;
}

/**
 * Azure's own cloud controller manager, as processes of this host in place of pods that KWOK only
 * pretends to run: each with its pod's arguments, its azure.json, the token of its ServiceAccount,
 * and the managed identity of its machine. The pod shows what a kubelet would see of the process.
 */
export class ControllerManager {
  private readonly supervisor: Supervisor;
  /** By the uid of the pod. */
  private readonly processes = new Map<string, Process>();
  private isPaused = false;
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: ControllerManagerOptions) {
    this.supervisor = new Supervisor(options.folder, options.log);
  }

  /** Runs it for each of its pods that run, and for no other. */
  follow(api: Api, server: ApiServer): Promise<void> {
    const result = this.last.then(() => (this.isPaused ? undefined : this.look(api, server)));
    this.last = result.catch(() => undefined);
    return result;
  }

  resume(): void {
    this.isPaused = false;
  }

  /** Ends it until it is resumed. */
  async pause(): Promise<void> {
    this.isPaused = true;
    await this.last;
    await this.keep([]);
  }

  private async look(api: Api, server: ApiServer): Promise<void> {
    const { items } = await api.get("/api/v1/pods?fieldSelector=status.phase%3DRunning");
    const pods = (items as Body[]).filter(
      ({ metadata, spec }) =>
        metadata.deletionTimestamp === undefined &&
        this.options.vmOf(spec.nodeName) !== undefined &&
        containerOf(spec) !== undefined,
    );
    await this.keep(pods.map(({ metadata }) => metadata.uid as string));
    for (const pod of pods) {
      const process = this.processes.get(pod.metadata.uid) ?? (await this.start(pod, api, server));
      if (Date.now() - process.renewed > renewedAfterMs) await this.renew(process, pod, api);
      await this.report(pod, process);
    }
  }

  /** Ends all but those of these pods. */
  private async keep(uids: readonly string[]): Promise<void> {
    for (const [uid, { name }] of this.processes) {
      if (uids.includes(uid)) continue;
      this.processes.delete(uid);
      await this.supervisor.stop(name);
    }
  }

  endOrphans = (): Promise<void> => this.supervisor.endOrphans();

  close = (): void => this.supervisor.close();

  private async renew(process: Process, { metadata, spec }: Body, api: Api): Promise<void> {
    const { namespace } = metadata;
    const account = `/api/v1/namespaces/${namespace}/serviceaccounts/${spec.serviceAccountName}`;
    const { status } = await api.post(`${account}/token`, {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {
        expirationSeconds: tokenSeconds,
        boundObjectRef: {
          apiVersion: "v1",
          kind: "Pod",
          name: metadata.name,
          uid: metadata.uid,
        },
      },
    });
    writeWhole(this.file(process.name, "token"), status.token as string);
    process.renewed = Date.now();
  }

  private async start(pod: Body, api: Api, server: ApiServer): Promise<Process> {
    const { metadata, spec } = pod;
    // Clusters share this host.
    const process = { name: metadata.name as string, port: await freePort(), renewed: 0 };
    const folder = this.file(process.name);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    await this.renew(process, pod, api);
    const core = `/api/v1/namespaces/${metadata.namespace}`;
    const { data } = await api.get(`${core}/configmaps/kube-root-ca.crt`);
    const kubeconfig = join(folder, "kubeconfig");
    writeWhole(
      kubeconfig,
      kubeconfigText({ ...server, ca: data["ca.crt"] as string }, join(folder, "token")),
    );
    const mounts = await this.mountSecrets(pod, api);
    const args = (containerOf(spec)?.args as string[]).map((arg) =>
      mounts.reduce((text, { path, folder }) => text.replace(`=${path}/`, `=${folder}/`), arg),
    );
    const origin = mounts.map(({ azure }) => azure).find((one) => one !== undefined);
    this.supervisor.start({
      name: process.name,
      command: [
        this.options.program,
        ...args.filter((arg) => !arg.startsWith("--secure-port=")),
        `--kubeconfig=${kubeconfig}`,
        `--secure-port=${process.port}`,
      ],
      env: {
        SSL_CERT_FILE: this.options.authority,
        // The metadata service's address can be none of this host's. Azure's SDKs ask here instead.
        IDENTITY_ENDPOINT: `${origin}/local/machines/${spec.nodeName}/token`,
        IDENTITY_HEADER: "local",
      },
    });
    this.processes.set(metadata.uid, process);
    this.options.log(`runs ${this.options.program} in place of pod ${process.name}`);
    return process;
  }

  /** Has the pod's kubelet say what has become of the process. */
  private async report(pod: Body, { name, port }: Process): Promise<void> {
    const process = this.supervisor.status().find((one) => one.name === name);
    if (process === undefined) return;
    const { readinessProbe } = containerOf(pod.spec) as Body;
    const isReady = await passesReadinessProbe(readinessProbe, process, port);
    const status = statusOfProcess(pod, process, isReady);
    if (status === undefined) return;
    await this.options
      .kubeletOf(pod.spec.nodeName)
      ?.patch(`${podPath(pod)}/status`, { status }, strategicPatch)
      .catch(unlessStatus(404));
  }

  /** Puts the Secrets that the pod mounts below the folder. */
  private async mountSecrets(
    { metadata, spec }: Body,
    api: Api,
  ): Promise<{ path: string; folder: string; azure?: string }[]> {
    const secrets = (spec.volumes as Body[]).filter(({ secret }) => secret !== undefined);
    return Promise.all(
      secrets.map(async (volume) => {
        const { secretName } = volume.secret;
        const { data } = await api.get(
          `/api/v1/namespaces/${metadata.namespace}/secrets/${secretName}`,
        );
        const folder = this.file(metadata.name, volume.name);
        mkdirSync(folder, { mode: 0o700 });
        let azure: string | undefined;
        for (const [key, value] of Object.entries(data as Record<string, string>)) {
          const text = Buffer.from(value, "base64").toString("utf8");
          const [origin] = /http:\/\/127\.0\.0\.1:\d+/.exec(text) ?? [];
          azure ??= origin;
          writeWhole(join(folder, key), origin === undefined ? text : onThisHost(text));
        }
        const { mountPath } = (containerOf(spec)?.volumeMounts as Body[]).find(
          (mount) => mount.name === volume.name,
        ) as { mountPath: string };
        return { path: mountPath, folder, azure };
      }),
    );
  }

  private file = (...names: string[]): string => join(this.options.folder, ...names);
}

/**
 * azure.json as this host needs it: Azure's SDKs send a token over TLS only, which the local Azure
 * speaks on the same port, and nothing serves a machine's metadata here.
 */
function onThisHost(text: string): string {
  const { resourceManagerEndpoint, ...others } = JSON.parse(text) as Record<string, string>;
  return JSON.stringify({
    ...others,
    resourceManagerEndpoint: resourceManagerEndpoint?.replace("http:", "https:"),
    useInstanceMetadata: false,
  });
}

const containerOf = (spec: Body): Body | undefined =>
  (spec.containers as Body[]).find(({ image }) => image?.includes(controllerManagerImage));

const kubeconfigText = ({ host, port, serverName, ca }: ApiServer, tokenFile: string): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: "pod",
        cluster: {
          server: `https://${host}:${port}`,
          "tls-server-name": serverName,
          "certificate-authority-data": Buffer.from(ca).toString("base64"),
        },
      },
    ],
    users: [{ name: "pod", user: { tokenFile } }],
    contexts: [{ name: "pod", context: { cluster: "pod", user: "pod" } }],
    "current-context": "pod",
  });
