import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

import { writeWhole } from "../../../../shared/files";
import type { VirtualMachine } from "../../machines";
import type { OwnPrograms } from "../../own-programs";
import { Supervisor } from "../../supervisor";
import { type Api, type ApiServer, type Body, strategicPatch, unlessStatus } from "../api";
import { freePort } from "../control-plane/ports";
import { serviceAccount } from "./cloud-provider";
import { podPath } from "./kubelets";
import { imageName, isOfDaemonSet } from "./mirror-pods";
import { type ContainerProcess, passesReadinessProbe, statusOfProcesses } from "./process-status";

/** As a kubelet asks for it, and renewed no sooner than a kubelet does. */
const tokenSeconds = 3607;
const renewedAfterMs = 0.8 * tokenSeconds * 1000;

/**
 * Where a process finds the folder of its pod, in which it is started: a Unix socket's path has no
 * room for that of a state folder.
 */
const podFolder = "/proc/self/cwd";

/** Where the disk driver looks for azure.json, through the API, unless its arguments say otherwise. */
const driverSecret = "kube-system/secrets/azure-cloud-provider";

/** These elect a leader by the name of their host, which all processes here share. */
const electsByHost = /^(csi-|snapshot-controller$)/;

export interface PodProcessesOptions {
  readonly programs: OwnPrograms;
  /** File of the authority that the local Azure identifies itself by. */
  readonly authority: string;
  /** For what pods would have, and for their logs. */
  readonly folder: string;
  readonly vmOf: (name: string) => VirtualMachine | undefined;
  /** The API as the kubelet of this machine sees it, if it has joined. */
  readonly kubeletOf: (name: string) => Api | undefined;
  readonly log: (message: string) => void;
}

/** A container that is a process of this host. */
interface Container {
  readonly name: string;
  /** Of its process. */
  readonly process: string;
  readonly port: number;
  readonly readinessProbe?: Body;
}

interface RunningPod {
  readonly containers: readonly Container[];
  /** When its token was issued. */
  renewed: number;
}

/**
 * Controllers of upstream's, as processes of this host in place of pods that KWOK only pretends to
 * run: each container with its pod's arguments, volumes, azure.json, the token of its
 * ServiceAccount, and the managed identity of its machine. The pod shows what a kubelet would see
 * of the processes. Containers that have no program here count as running.
 */
export class PodProcesses {
  private readonly supervisor: Supervisor;
  /** By the uid of the pod. */
  private readonly pods = new Map<string, RunningPod>();
  private isPaused = false;
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: PodProcessesOptions) {
    this.supervisor = new Supervisor(options.folder, options.log);
  }

  /** Runs processes for pods that run, and for no other. */
  follow(api: Api, server: ApiServer): Promise<void> {
    const result = this.last.then(() => (this.isPaused ? undefined : this.look(api, server)));
    this.last = result.catch(() => undefined);
    return result;
  }

  resume(): void {
    this.isPaused = false;
  }

  /** Ends them until they are resumed. */
  async pause(): Promise<void> {
    this.isPaused = true;
    await this.last;
    await this.keep([]);
  }

  private async look(api: Api, server: ApiServer): Promise<void> {
    const { items } = await api.get("/api/v1/pods?fieldSelector=status.phase%3DRunning");
    const pods = (items as Body[]).filter(
      (pod) =>
        pod.metadata.deletionTimestamp === undefined &&
        this.options.vmOf(pod.spec.nodeName) !== undefined &&
        !isOfDaemonSet(pod) &&
        (pod.spec.containers as Body[]).some((one) => imageName(one) in this.options.programs),
    );
    const chosen = this.withoutRivals(pods.filter((pod) => this.programsOf(pod).length > 0));
    await this.keep(chosen.map(({ metadata }) => metadata.uid as string));
    const looks = await Promise.allSettled(
      pods.map(async (pod) => {
        const running = chosen.includes(pod) ? await this.run(pod, api, server) : undefined;
        await this.report(pod, running);
      }),
    );
    const failed = looks.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  /** Of pods that could not tell which of them leads, one, and still the same while it is there. */
  private withoutRivals(pods: readonly Body[]): Body[] {
    const first = [...pods].sort(
      (a, b) => Number(this.pods.has(b.metadata.uid)) - Number(this.pods.has(a.metadata.uid)),
    );
    return first.filter(
      (pod) =>
        !this.programsOf(pod).some(([container]) => electsByHost.test(imageName(container))) ||
        pod === first.find((one) => serviceAccount(one) === serviceAccount(pod)),
    );
  }

  /** A pod's containers that have a program here now, and the path of each one's. */
  private programsOf({ spec }: Body): [container: Body, program: string][] {
    return (spec.containers as Body[]).flatMap((container): [Body, string][] => {
      const program = this.options.programs[imageName(container)]?.();
      return program === undefined ? [] : [[container, program]];
    });
  }

  /** Ends all but those of these pods. */
  private async keep(uids: readonly string[]): Promise<void> {
    for (const [uid, { containers }] of this.pods) {
      if (uids.includes(uid)) continue;
      this.pods.delete(uid);
      // In order: sidecars come first, and complain on the host's disk of a driver that is gone.
      for (const { process } of containers) await this.supervisor.stop(process);
    }
  }

  endOrphans = (): Promise<void> => this.supervisor.endOrphans();

  close = (): void => this.supervisor.close();

  private async run(pod: Body, api: Api, server: ApiServer): Promise<RunningPod> {
    const running = this.pods.get(pod.metadata.uid) ?? (await this.start(pod, api, server));
    if (Date.now() - running.renewed > renewedAfterMs) {
      await this.renewToken(pod, api);
      running.renewed = Date.now();
    }
    return running;
  }

  private async renewToken(pod: Body, api: Api): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    const account = `/api/v1/namespaces/${namespace}/serviceaccounts/${pod.spec.serviceAccountName}`;
    const { status } = await api.post(`${account}/token`, {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {
        expirationSeconds: tokenSeconds,
        boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
      },
    });
    writeWhole(this.file(pod, "token"), status.token as string);
  }

  private async start(pod: Body, api: Api, server: ApiServer): Promise<RunningPod> {
    const { metadata, spec } = pod;
    rmSync(this.file(pod), { recursive: true, force: true });
    mkdirSync(this.file(pod), { recursive: true, mode: 0o700 });
    await this.renewToken(pod, api);
    const running = { containers: [] as Container[], renewed: Date.now() };
    const core = `/api/v1/namespaces/${metadata.namespace}`;
    const { data } = await api.get(`${core}/configmaps/kube-root-ca.crt`);
    const trusted = { ...server, ca: data["ca.crt"] as string };
    writeWhole(this.file(pod, "kubeconfig"), kubeconfigText(trusted, this.file(pod, "token")));
    const azure = await this.fillVolumes(pod, api);
    for (const [container, program] of this.programsOf(pod)) {
      const process = `${metadata.name}_${container.name}`;
      // Clusters share this host.
      const port = await freePort();
      this.supervisor.start({
        name: process,
        cwd: this.file(pod),
        command: [
          program,
          ...argumentsOf(container, spec, port),
          `--kubeconfig=${podFolder}/kubeconfig`,
        ],
        env: {
          SSL_CERT_FILE: this.options.authority,
          ...(isDiskDriver(container) && { AZURE_CREDENTIAL_FILE: `${podFolder}/azure.json` }),
          // The metadata service's address can be none of this host's. Azure's SDKs ask here instead.
          ...(azure && {
            IDENTITY_ENDPOINT: `${azure}/local/machines/${spec.nodeName}/token`,
            IDENTITY_HEADER: "local",
          }),
        },
      });
      const { name, readinessProbe } = container as Container;
      running.containers.push({ name, readinessProbe, process, port });
    }
    this.pods.set(metadata.uid, running);
    const programs = this.programsOf(pod).map(([, program]) => program);
    this.options.log(`runs ${programs.join(", ")} in place of pod ${metadata.name}`);
    return running;
  }

  /** Has the pod's kubelet say what has become of the processes. */
  private async report(pod: Body, running?: RunningPod): Promise<void> {
    const processes = new Map<string, ContainerProcess>();
    for (const { name, process, port, readinessProbe } of running?.containers ?? []) {
      const status = this.supervisor.status().find((one) => one.name === process)!;
      const isReady = await passesReadinessProbe(readinessProbe, status, port);
      processes.set(name, { ...status, isReady });
    }
    const status = statusOfProcesses(pod, processes);
    if (status === undefined) return;
    await this.options
      .kubeletOf(pod.spec.nodeName)
      ?.patch(`${podPath(pod)}/status`, { status }, strategicPatch)
      .catch(unlessStatus(404));
  }

  /**
   * Puts the Secrets that the pod mounts below its folder, and what the disk driver reads as its
   * ServiceAccount. Returns where Azure answers, as far as these say.
   */
  private async fillVolumes(pod: Body, api: Api): Promise<string | undefined> {
    const { metadata, spec } = pod;
    let azure: string | undefined;
    const write = (file: string, base64: string): void => {
      const text = Buffer.from(base64, "base64").toString("utf8");
      const [origin] = /http:\/\/127\.0\.0\.1:\d+/.exec(text) ?? [];
      azure ??= origin;
      writeWhole(file, origin === undefined ? text : onThisHost(text));
    };
    for (const { name, secret, emptyDir } of (spec.volumes ?? []) as Body[]) {
      if (!secret && !emptyDir) continue;
      mkdirSync(this.file(pod, name), { mode: 0o700 });
      if (!secret) continue;
      const secrets = `/api/v1/namespaces/${metadata.namespace}/secrets`;
      const { data } = await api.get(`${secrets}/${secret.secretName}`);
      for (const [key, value] of Object.entries(data as Record<string, string>)) {
        write(this.file(pod, name, key), value);
      }
    }
    if (this.programsOf(pod).some(([container]) => isDiskDriver(container))) {
      const { data } = await api.as(serviceAccount(pod)).get(`/api/v1/namespaces/${driverSecret}`);
      write(this.file(pod, "azure.json"), data["cloud-config"]);
    }
    return azure;
  }

  private file = ({ metadata }: Body, ...names: string[]): string =>
    join(this.options.folder, metadata.name, ...names);
}

const isDiskDriver = (container: Body): boolean => imageName(container) === "azuredisk-csi";

/** A container's arguments, with paths in its volumes and ports as they are here. */
function argumentsOf(container: Body, { volumes = [] }: Body, port: number): string[] {
  const { args = [], env = [], volumeMounts = [] } = container;
  const own = (volumes as Body[]).filter(({ secret, emptyDir }) => secret ?? emptyDir);
  const paths = (volumeMounts as Body[]).filter(({ name }) => own.some((one) => one.name === name));
  const values = new Map((env as Body[]).map(({ name, value }) => [name, value as string]));
  return [
    ...(args as string[]).map((arg) =>
      paths
        .reduce(
          (text, { name, mountPath }) =>
            text.replace(RegExp(`=(unix://)?${mountPath}/`), `=$1${podFolder}/${name}/`),
          arg.replace(/\$\((\w+)\)/g, (reference, name: string) => values.get(name) ?? reference),
        )
        .replace(/^(--secure-port=)\d+$/, (_, flag: string) => `${flag}${port}`)
        .replace(/^(--metrics-address=).*$/, (_, flag: string) => `${flag}127.0.0.1:${port}`),
    ),
    // There is none of this name, and then it reads the file that its environment names.
    ...(isDiskDriver(container) ? ["--cloud-config-secret-name=none"] : []),
  ];
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
