import { mkdirSync, rmSync } from "node:fs";
import { get } from "node:https";
import { join } from "node:path";

import { writeWhole } from "../../../../shared/files";
import { metadataProxy } from "../../../arm/rest/metadata-proxy";
import type { ServicePorts, VirtualMachine } from "../../machines";
import type { OwnPrograms } from "../../own-programs";
import { type ProcessStatus, Supervisor } from "../../supervisor";
import { type Api, type ApiServer, type Body, strategicPatch, unlessStatus } from "../api";
import { freePort } from "../control-plane/static-pods";
import { asPod, serviceAccount } from "./cloud-provider";
import { podPath } from "./kubelets";
import { imageName, isOfDaemonSet, readyConditions } from "./mirror-pods";

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

interface PodProcessesOptions {
  readonly programs: OwnPrograms;
  /** File of the authority that the local Azure identifies itself by. */
  readonly authority: string;
  /** For what pods would have, and for their logs. */
  readonly folder: string;
  readonly vmOf: (name: string) => VirtualMachine | undefined;
  /** The API as the kubelet of this machine sees it, if it has joined. */
  readonly kubeletOf: (name: string) => Api | undefined;
  /** Where the local Azure answers, once it does. */
  readonly ports: () => ServicePorts | undefined;
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

/** What a process reaches. */
interface Access {
  readonly api: Api;
  readonly server: ApiServer;
  /** Of the local Azure. */
  readonly ports: ServicePorts;
}

interface RunningPod {
  readonly containers: readonly Container[];
  /** When its token was issued. */
  renewed: number;
}

/**
 * Programs of upstream's, as processes of this host in place of pods that KWOK only pretends to run:
 * each container with its pod's arguments, volumes, azure.json, the token of its ServiceAccount, and
 * the metadata service of its machine. The pod shows what a kubelet would see of the processes.
 * Containers that have no program here count as running.
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

  /** Runs processes for those of these pods that run, and for no other. */
  follow(pods: readonly Body[], api: Api, server: ApiServer): Promise<void> {
    const result = this.last.then(() => (this.isPaused ? undefined : this.look(pods, api, server)));
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

  private async look(all: readonly Body[], api: Api, server: ApiServer): Promise<void> {
    const ports = this.options.ports();
    if (ports === undefined) return;
    const pods = all.filter(
      (pod) =>
        pod.status.phase === "Running" &&
        pod.metadata.deletionTimestamp === undefined &&
        this.options.vmOf(pod.spec.nodeName) !== undefined &&
        ownContainers(pod).some((one) => imageName(one) in this.options.programs),
    );
    const chosen = this.withoutRivals(pods.filter((pod) => this.programsOf(pod).length > 0));
    await this.keep(chosen.map(({ metadata }) => metadata.uid as string));
    const looks = await Promise.allSettled(
      pods.map(async (pod) => {
        const access = { api, server, ports };
        const running = chosen.includes(pod) ? await this.run(pod, access) : undefined;
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
  private programsOf(pod: Body): [container: Body, program: string][] {
    return ownContainers(pod).flatMap((container): [Body, string][] => {
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

  private async run(pod: Body, access: Access): Promise<RunningPod> {
    const running = this.pods.get(pod.metadata.uid) ?? (await this.start(pod, access));
    if (Date.now() - running.renewed > renewedAfterMs) {
      await this.renewTokens(pod, access.api);
      running.renewed = Date.now();
    }
    return running;
  }

  /** Those that the pod gets by itself, and those that its volumes ask for. */
  private async renewTokens(pod: Body, api: Api): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    const account = `/api/v1/namespaces/${namespace}/serviceaccounts/${pod.spec.serviceAccountName}`;
    const renew = async (file: string, audience?: string): Promise<void> => {
      const { status } = await api.post(`${account}/token`, {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: {
          ...(audience !== undefined && { audiences: [audience] }),
          expirationSeconds: tokenSeconds,
          boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
        },
      });
      writeWhole(file, status.token as string);
    };
    await renew(this.file(pod, "token"));
    for (const { name: volume, audience, path } of tokensIn(pod)) {
      mkdirSync(this.file(pod, volume), { recursive: true, mode: 0o700 });
      await renew(this.file(pod, volume, path), audience);
    }
  }

  private async start(pod: Body, { api, server, ports }: Access): Promise<RunningPod> {
    const { metadata, spec } = pod;
    rmSync(this.file(pod), { recursive: true, force: true });
    mkdirSync(this.file(pod), { recursive: true, mode: 0o700 });
    await this.renewTokens(pod, api);
    const running = { containers: [] as Container[], renewed: Date.now() };
    const core = `/api/v1/namespaces/${metadata.namespace}`;
    const { data } = await api.get(`${core}/configmaps/kube-root-ca.crt`);
    const trusted = { ...server, ca: data["ca.crt"] as string };
    writeWhole(this.file(pod, "kubeconfig"), kubeconfigText(trusted, this.file(pod, "token")));
    await this.fillVolumes(pod, api);
    for (const [container, program] of this.programsOf(pod)) {
      const process = `${metadata.name}_${container.name}`;
      // Clusters share this host.
      const ownPort = await freePort();
      this.supervisor.start({
        name: process,
        cwd: this.file(pod),
        command: [
          program,
          ...argumentsOf(container, spec, ownPort),
          `--kubeconfig=${podFolder}/kubeconfig`,
        ],
        env: {
          SSL_CERT_FILE: this.options.authority,
          ...(isDiskDriver(container) && { AZURE_CREDENTIAL_FILE: `${podFolder}/azure.json` }),
          ...nodeNamesOf(container, spec),
          ...metadataProxy(spec.nodeName, ports.resourceManager),
          // By which the cluster's own pods get to Entra; all else is on this host.
          HTTPS_PROXY: `http://127.0.0.1:${ports.proxy}`,
          ...azureNamesOf(container, spec),
        },
      });
      const { name, readinessProbe } = container as Container;
      running.containers.push({ name, readinessProbe, process, port: ownPort });
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
   * ServiceAccount.
   */
  private async fillVolumes(pod: Body, api: Api): Promise<void> {
    const { metadata, spec } = pod;
    const write = (file: string, base64: string): void =>
      writeWhole(file, onThisHost(Buffer.from(base64, "base64").toString("utf8")));
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
      const { data } = await asPod(api, pod).get(`/api/v1/namespaces/${driverSecret}`);
      write(this.file(pod, "azure.json"), data["cloud-config"]);
    }
  }

  private file = ({ metadata }: Body, ...names: string[]): string =>
    join(this.options.folder, metadata.name, ...names);
}

/**
 * Containers that a process can stand for. On nodes the disk driver formats and mounts, for which
 * there is no machine.
 */
const ownContainers = (pod: Body): Body[] =>
  (pod.spec.containers as Body[]).filter((one) => !(isDiskDriver(one) && isOfDaemonSet(pod)));

const isDiskDriver = (container: Body): boolean => imageName(container) === "azuredisk-csi";

/** What of a container's environment names the machine that it is on. */
const nodeNamesOf = ({ env = [] }: Body, { nodeName }: Body): Record<string, string> =>
  Object.fromEntries(
    (env as Body[])
      .filter(({ valueFrom }) => valueFrom?.fieldRef?.fieldPath === "spec.nodeName")
      .map(({ name }) => [name, nodeName]),
  );

interface TokenVolume {
  readonly name: string;
  readonly audience: string;
  readonly path: string;
}

/** Tokens for others than the API that a pod's volumes have. */
const tokensIn = ({ spec }: Body): TokenVolume[] =>
  ((spec.volumes ?? []) as Body[]).flatMap(({ name, projected }) =>
    ((projected?.sources ?? []) as Body[]).flatMap(({ serviceAccountToken: token }) =>
      token?.audience === undefined ? [] : [{ name, audience: token.audience, path: token.path }],
    ),
  );

/** Turns a path in one of a container's volumes into where that volume is here. */
function pathsHere({ volumeMounts = [] }: Body, { volumes = [] }: Body) {
  const own = (volumes as Body[]).filter(
    ({ secret, emptyDir, projected }) => secret ?? emptyDir ?? projected,
  );
  const mounts = (volumeMounts as Body[]).filter(({ name }) =>
    own.some((one) => one.name === name),
  );
  return (text: string): string =>
    mounts.reduce(
      (one, { name, mountPath }) =>
        one.replace(RegExp(`(^|=|unix://)${mountPath}/`), `$1${podFolder}/${name}/`),
      text,
    );
}

/** What Azure's libraries look for, with paths as they are here. */
function azureNamesOf(container: Body, spec: Body): Record<string, string> {
  const here = pathsHere(container, spec);
  return Object.fromEntries(
    ((container.env ?? []) as Body[])
      .filter(({ name, value }) => /^AZURE_/.test(name) && value !== undefined)
      .map(({ name, value }) => [name, here(value as string)]),
  );
}

/** A container's arguments, with paths in its volumes and ports as they are here. */
function argumentsOf(container: Body, spec: Body, port: number): string[] {
  const { args = [], env = [] } = container;
  const here = pathsHere(container, spec);
  const values = new Map<string, string>([
    ...(env as Body[]).map(({ name, value }) => [name, value] as const),
    ...Object.entries(nodeNamesOf(container, spec)),
  ]);
  return [
    ...(args as string[]).map((arg) =>
      here(arg.replace(/\$\((\w+)\)/g, (reference, name: string) => values.get(name) ?? reference))
        .replace(/^(--secure-port=)\d+$/, (_, flag: string) => `${flag}${port}`)
        .replace(/^(--metrics-address=).*$/, (_, flag: string) => `${flag}127.0.0.1:${port}`),
    ),
    // There is none of this name, and then it reads the file that its environment names.
    ...(isDiskDriver(container) ? ["--cloud-config-secret-name=none"] : []),
  ];
}

/**
 * azure.json as this host needs it: Azure's SDKs send a token over TLS only, which the local Azure
 * speaks on the same port.
 */
const onThisHost = (text: string): string =>
  text.replace(/http:(\/\/127\.0\.0\.1:\d+)/, "https:$1");

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

/** What ended by a signal has no exit code; of a kill, container runtimes say this one. */
const killed = 137;

interface ContainerProcess extends ProcessStatus {
  readonly isReady: boolean;
}

/**
 * What a kubelet reports of a running pod of which containers are processes of this host; nothing
 * where it has said so before.
 *
 * @param processes by the name of the container; the others count as running
 */
function statusOfProcesses(
  { status }: Body,
  processes: ReadonlyMap<string, ContainerProcess>,
): Body | undefined {
  const said = status.containerStatuses as Body[];
  const containerStatuses = said.map((one): Body => {
    const process = processes.get(one.name);
    return process ? { ...one, ...statusOf(process) } : { ...one, ready: true };
  });
  const facts = ({ ready, restartCount, state }: Body): string =>
    `${ready} ${restartCount} ${Boolean(state.running)}`;
  if (containerStatuses.every((one, index) => facts(one) === facts(said[index]!))) return undefined;
  const unready = containerStatuses.filter(({ ready }) => !ready).map(({ name }) => name as string);
  return { conditions: readyConditions(unready), containerStatuses };
}

function statusOf({ pid, since, restarts, lastExit, isReady }: ContainerProcess): Body {
  const runs = pid !== undefined;
  const [, exitCode = killed] = /^exit code (\d+)$/.exec(lastExit ?? "") ?? [];
  return {
    ready: isReady,
    started: runs,
    restartCount: restarts,
    state: runs
      ? { running: { startedAt: new Date(since).toISOString() }, waiting: null }
      : { running: null, waiting: { reason: "CrashLoopBackOff", message: lastExit } },
    ...(lastExit && {
      lastState: { terminated: { exitCode: Number(exitCode), reason: "Error" } },
    }),
  };
}

/** Whether a process that listens on this port counts as ready, as its kubelet would find out. */
export async function passesReadinessProbe(
  probe: Body | undefined,
  { pid, since }: ProcessStatus,
  port: number,
): Promise<boolean> {
  if (pid === undefined) return false;
  if (probe === undefined) return true;
  const { initialDelaySeconds = 0, timeoutSeconds = 1, httpGet } = probe;
  if (Date.now() - since < initialDelaySeconds * 1000) return false;
  return new Promise((resolve) => {
    const request = get(
      {
        ...{ host: "127.0.0.1", port, path: httpGet.path, timeout: timeoutSeconds * 1000 },
        // A kubelet takes any certificate.
        rejectUnauthorized: false,
      },
      (response) => {
        response.resume();
        const { statusCode = 0 } = response;
        resolve(statusCode >= 200 && statusCode < 400);
      },
    );
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(false));
  });
}
