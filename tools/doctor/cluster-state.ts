import { KubernetesApi, KubernetesObject, NoAnswer } from "../../components/cluster/kubernetes-api";
import { getMachines, Machines, tryWrite } from "../../components/cluster/cluster-health";

/** A DaemonSet or Deployment. */
export interface Workload extends Pick<KubernetesObject, "metadata"> {
  readonly spec?: {
    readonly replicas?: number;
    readonly template?: {
      readonly spec?: { readonly containers?: readonly { readonly image: string }[] };
    };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly desiredNumberScheduled?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberReady?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
  };
}

/** All that the API says of a cluster, at one moment. */
export interface ClusterState extends Machines {
  /** The API server's time. */
  readonly now: number;
  /** Of the API server that answered, such as v1.36.3. */
  readonly version: string;
  /** Why etcd took no write; undefined when it took one. */
  readonly writeError: string | undefined;
  /** Size of etcd's database; undefined where the API server does not say it. */
  readonly storageBytes: number | undefined;
  readonly issuer: IssuerState;
  readonly kubelets: readonly KubeletState[];
  readonly daemonSets: readonly Workload[];
  readonly deployments: readonly Workload[];
  readonly dnsPods: readonly KubernetesObject[];
  /** Of every namespace. */
  readonly pendingPods: readonly KubernetesObject[];
  /** Undefined where no control plane has tried to make one. */
  readonly snapshot: SnapshotReport | undefined;
}

/** What the kubelet of a machine says, when the API server asks it. */
export interface KubeletState {
  readonly machine: string;
  /** How long its certificate for the API is still valid; undefined where it does not say it. */
  readonly clientSeconds?: number;
  /** Why the API server does not reach it. */
  readonly error?: string;
}

/** What the API server that answered says of whose tokens people log in by. */
export interface IssuerState {
  /** When it got the issuer's keys, in seconds; undefined where it has none, or needed none yet. */
  readonly keysAt?: number;
  /** When it asked for them in vain. */
  readonly failedAt?: number;
  /** How many of the issuer's tokens it has not admitted. */
  readonly refused: number;
}

/** What control planes say of their snapshots of etcd, all of it as text. */
export interface SnapshotReport {
  /** Of the newest that was made: when, as ISO 8601, its name, its size, by whom, and where it is. */
  readonly time?: string;
  readonly name?: string;
  readonly bytes?: string;
  readonly machine?: string;
  readonly where?: string;
  /** When one failed since, and why. */
  readonly failed?: string;
  readonly error?: string;
}

/** @throws Error, or NoAnswer, when the API is not ready or refuses to say something of this */
export async function getClusterState(api: KubernetesApi): Promise<ClusterState> {
  await api.get("/readyz");
  const writeError = await tryWrite(api).then(
    () => undefined,
    ({ message }: Error) => message,
  );
  const [machines, version, metrics, daemonSets, deployments, dnsPods, pendingPods, snapshots] =
    await Promise.all([
      getMachines(api),
      api.get("/version"),
      api.get("/metrics"),
      api.list<Workload>("/apis/apps/v1/daemonsets"),
      api.list<Workload>("/apis/apps/v1/deployments"),
      api.list("/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns"),
      api.list("/api/v1/pods?fieldSelector=status.phase%3DPending"),
      api.list<Pick<KubernetesObject, "metadata"> & { readonly data?: SnapshotReport }>(
        "/api/v1/namespaces/kube-system/configmaps?fieldSelector=metadata.name%3Dzoned-etcd-snapshot",
      ),
    ]);
  const kubelets = await Promise.all(
    machines.nodes.map(({ metadata: { name: machine } }) =>
      api.get(`/api/v1/nodes/${machine}/proxy/metrics`).then(
        (text): KubeletState => ({ machine, clientSeconds: clientSecondsIn(text) }),
        (error: Error): KubeletState => ({
          machine,
          // The API server waits longer for a kubelet than it is waited for.
          error: error instanceof NoAnswer ? error.code : error.message,
        }),
      ),
    ),
  );
  return {
    ...machines,
    kubelets,
    now: api.now,
    version: (JSON.parse(version) as { gitVersion: string }).gitVersion,
    writeError,
    storageBytes: storageBytesIn(metrics),
    issuer: issuerIn(metrics),
    daemonSets,
    deployments,
    dnsPods,
    pendingPods,
    snapshot: snapshots[0]?.data,
  };
}

/** The largest, where events have an etcd of their own. */
function storageBytesIn(metrics: string): number | undefined {
  const sizes = [...metrics.matchAll(/^apiserver_storage_size_bytes\{.*\} (\S+)$/gm)].map(
    ([, size]) => Number(size),
  );
  return sizes.length === 0 ? undefined : Math.max(...sizes);
}

/** Infinite where a kubelet has none, as one whose kubeconfig holds another credential. */
function clientSecondsIn(metrics: string): number | undefined {
  const [, seconds] = /^kubelet_certificate_manager_client_ttl_seconds (\S+)$/m.exec(metrics) ?? [];
  return seconds !== undefined && Number.isFinite(Number(seconds)) ? Number(seconds) : undefined;
}

const ofIssuer = "apiserver_authentication_jwt_authenticator_";

/** By the metrics of an API server. */
export function issuerIn(metrics: string): IssuerState {
  const valueOf = (name: string, result: string): number | undefined => {
    const line = new RegExp(`^${ofIssuer}${name}\\{.*result="${result}".*\\} (\\S+)$`, "m");
    const [, value] = line.exec(metrics) ?? [];
    return value === undefined ? undefined : Number(value);
  };
  return {
    keysAt: valueOf("jwks_fetch_last_timestamp_seconds", "success"),
    failedAt: valueOf("jwks_fetch_last_timestamp_seconds", "failure"),
    refused: valueOf("latency_seconds_count", "failure") ?? 0,
  };
}
