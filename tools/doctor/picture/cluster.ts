import {
  ApiError,
  KubernetesApi,
  type KubernetesObject,
  NoAnswer,
} from "../../../components/cluster/kubernetes-api";
import { checkCluster, type Cluster, type Report } from "../doctor";
import type { Rule } from "./azure";

export interface Service extends Pick<KubernetesObject, "metadata"> {
  readonly spec: { readonly type?: string };
  readonly status?: {
    readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] };
  };
}

export interface PersistentVolume extends Pick<KubernetesObject, "metadata"> {
  readonly spec: {
    /** The id of a disk, where Azure's disk driver made the volume. */
    readonly csi?: { readonly volumeHandle?: string };
    readonly claimRef?: { readonly namespace?: string; readonly name?: string };
  };
  readonly status?: { readonly phase?: string };
}

export interface ClusterObjects {
  readonly nodes: readonly KubernetesObject[];
  readonly volumes: readonly PersistentVolume[];
  readonly services: readonly Service[];
}

/** What Kubernetes says of a cluster, at one moment. */
export interface ClusterAnswer {
  /** What the doctor finds. */
  readonly report: Report;
  /** Undefined where the API does not answer, or refuses. */
  readonly objects?: ClusterObjects;
}

export async function getClusterAnswer(cluster: Cluster): Promise<ClusterAnswer> {
  const report = await checkCluster(cluster);
  return { report, objects: report.looked ? await getObjects(cluster) : undefined };
}

async function getObjects({ kubeconfig, proxy }: Cluster): Promise<ClusterObjects | undefined> {
  const api = new KubernetesApi(kubeconfig, proxy);
  return Promise.all([
    api.list("/api/v1/nodes"),
    api.list<PersistentVolume>("/api/v1/persistentvolumes"),
    api.list<Service>("/api/v1/services"),
  ])
    .then(([nodes, volumes, services]) => ({ nodes, volumes, services }))
    .catch((error: unknown) => {
      if (error instanceof NoAnswer || error instanceof ApiError) return undefined;
      throw error;
    })
    .finally(() => api.close());
}

const nameOf = ({ metadata: { namespace, name } }: Service): string => `${namespace}/${name}`;

/** The cloud provider names rules by the Service's uid. */
export const serviceOf = ({ name }: Rule, services: readonly Service[]): string | undefined => {
  const service = services.find(
    ({ metadata: { uid } }) =>
      uid !== undefined && name.startsWith(`a${uid.replaceAll("-", "")}`.slice(0, 32)),
  );
  return service && nameOf(service);
};

/** Services that the cloud provider has given no address. */
export const waitingServices = (services: readonly Service[]): string[] =>
  services
    .filter(
      ({ spec, status }) =>
        spec.type === "LoadBalancer" && (status?.loadBalancer?.ingress ?? []).length === 0,
    )
    .map(nameOf);
