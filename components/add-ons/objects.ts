import { CustomResourceDefinition } from "@pulumi/kubernetes/apiextensions/v1";
import { DaemonSet, Deployment } from "@pulumi/kubernetes/apps/v1";
import { ConfigMap, ServiceAccount } from "@pulumi/kubernetes/core/v1";
import { PodDisruptionBudget } from "@pulumi/kubernetes/policy/v1";
import { ClusterRole, ClusterRoleBinding } from "@pulumi/kubernetes/rbac/v1";
import { CSIDriver } from "@pulumi/kubernetes/storage/v1";
import * as pulumi from "@pulumi/pulumi";
import { CORE_SCHEMA, loadAll } from "js-yaml";

import type { ApiServer } from "../api-server";
import type { Settings } from "../settings/settings";
import { controlPlaneMark } from "../settings/topology";

/** A Kubernetes object as its manifest has it. */
export interface ManifestObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: unknown;
}

/** The parts of a Deployment or DaemonSet that an add-on changes. */
export interface Workload {
  spec: {
    replicas?: number;
    strategy?: object;
    selector: { matchLabels: Record<string, string> };
    template: {
      metadata: { annotations?: Record<string, pulumi.Input<string>> };
      spec: {
        nodeSelector?: Record<string, string>;
        tolerations?: object[];
        topologySpreadConstraints?: object[];
        initContainers?: { image: string }[];
        containers: {
          name: string;
          image: string;
          args?: string[];
          env?: { name: string; value?: pulumi.Input<string>; valueFrom?: object }[];
          volumeMounts?: { name: string; mountPath?: string; readOnly?: boolean }[];
        }[];
        volumes?: {
          name: string;
          hostPath?: { path: string; type: string };
          projected?: object;
        }[];
      };
    };
  };
}

type Make = (
  name: string,
  object: ManifestObject,
  opts: pulumi.CustomResourceOptions,
) => pulumi.CustomResource;

const as =
  <Args>(
    Kind: new (
      name: string,
      args: Args,
      opts: pulumi.CustomResourceOptions,
    ) => pulumi.CustomResource,
  ): Make =>
  (name, object, opts) =>
    new Kind(name, object as Args, opts);

/** The kinds that the upstream manifests of this program contain. */
const kinds: ReadonlyMap<string, Make> = new Map([
  ["apiextensions.k8s.io/v1/CustomResourceDefinition", as(CustomResourceDefinition)],
  ["apps/v1/DaemonSet", as(DaemonSet)],
  ["apps/v1/Deployment", as(Deployment)],
  ["policy/v1/PodDisruptionBudget", as(PodDisruptionBudget)],
  ["rbac.authorization.k8s.io/v1/ClusterRole", as(ClusterRole)],
  ["rbac.authorization.k8s.io/v1/ClusterRoleBinding", as(ClusterRoleBinding)],
  ["storage.k8s.io/v1/CSIDriver", as(CSIDriver)],
  ["v1/ConfigMap", as(ConfigMap)],
  ["v1/ServiceAccount", as(ServiceAccount)],
]);

/** Everything in a manifest, lists taken apart, empty documents left out. */
export function parseObjects(path: string, text: string): ManifestObject[] {
  return documentsOf(path, text).flatMap((content) => {
    if (content === null) {
      return [];
    }
    return content.kind.endsWith("List") && content.items !== undefined ? content.items : [content];
  });
}

type Content = (ManifestObject & { items?: ManifestObject[] }) | null;

function documentsOf(path: string, text: string): Content[] {
  try {
    return loadAll(text, undefined, { schema: CORE_SCHEMA }) as Content[];
  } catch (error) {
    throw new pulumi.RunError(`${path} is not YAML: ${(error as Error).message}`);
  }
}

/**
 * The one object of that kind and name, to be changed in place.
 *
 * @throws RunError when it is not there, as after a bump of a version whose manifest is another
 */
export function objectIn<Shape>(
  objects: readonly ManifestObject[],
  kind: string,
  name: string,
): Shape {
  const [found, ...more] = objects.filter(
    (object) => object.kind === kind && object.metadata.name === name,
  );
  if (found === undefined || more.length > 0) {
    throw new pulumi.RunError(
      `expected one ${kind} ${name} in the manifest, got ${more.length + (found ? 1 : 0)}; ` +
        "the manifest's version in components/versions.ts and what this program changes in it do not fit",
    );
  }
  return found as unknown as Shape;
}

/** Lets an update go on as soon as a workload is applied; {@link RollOut} waits for its pods. */
export const withoutWaiting = <Metadata extends ManifestObject["metadata"]>(
  metadata: Metadata,
) => ({
  ...metadata,
  annotations: { ...metadata.annotations, "pulumi.com/skipAwait": "true" },
});

export const isWorkload = ({ kind }: ManifestObject): boolean =>
  kind === "DaemonSet" || kind === "Deployment";

/**
 * Makes a resource of each object, called `<prefix>/<kind>/<name>`.
 *
 * What runs comes after what it needs to run: a DaemonSet whose service account is missing makes
 * its pods much later than it could.
 */
export function applyObjects(
  prefix: string,
  objects: readonly ManifestObject[],
  opts: pulumi.CustomResourceOptions,
): pulumi.CustomResource[] {
  const make = (object: ManifestObject, options: pulumi.CustomResourceOptions) => {
    const kind = `${object.apiVersion}/${object.kind}`;
    const Kind = kinds.get(kind);
    if (Kind === undefined) {
      throw new pulumi.RunError(
        `${prefix} has a ${kind} called ${object.metadata.name}, and components/add-ons/objects.ts knows only ` +
          `${[...kinds.keys()].join(", ")}; add the kind there`,
      );
    }
    return Kind(`${prefix}/${object.kind}/${object.metadata.name}`, object, options);
  };
  const needed = objects
    .filter((object) => !isWorkload(object))
    .map((object) => make(object, opts));
  const afterNeeded = needed.length > 0 ? { ...opts, dependsOn: needed } : opts;
  const running = objects
    .filter(isWorkload)
    .map((object) => make({ ...object, metadata: withoutWaiting(object.metadata) }, afterNeeded));
  return [...needed, ...running];
}

/**
 * Where a pod belongs that calls Azure: on control plane machines, since they alone carry the
 * identity, and also before the cloud provider has been there.
 */
export const nodeSelector = { "kubernetes.io/os": "linux", [controlPlaneMark]: "" };

export const tolerations = [
  { key: controlPlaneMark, operator: "Exists", effect: "NoSchedule" },
  {
    key: "node.cloudprovider.kubernetes.io/uninitialized",
    operator: "Exists",
    effect: "NoSchedule",
  },
  { key: "CriticalAddonsOnly", operator: "Exists" },
];

/** One to work and one to take over, each on a machine of its own. */
export const replicas = ({ controlPlaneCount }: Pick<Settings, "controlPlaneCount">): number =>
  Math.min(2, controlPlaneCount);

/**
 * Of a budget: by itself one that lets its only pod go keeps it as long as it is not ready, as on a machine whose pod
 * network is broken and that is drained for that very reason.
 *
 * @see https://kubernetes.io/docs/tasks/run-application/configure-pdb/#unhealthy-pod-eviction-policy
 */
export const unreadyMayGo = "AlwaysAllow";

/** Prefers zones, then machines, that have none of these pods yet. */
export const spread = (matchLabels: Readonly<Record<string, string>>) =>
  ["topology.kubernetes.io/zone", "kubernetes.io/hostname"].map((topologyKey) => ({
    topologyKey,
    maxSkew: 1,
    whenUnsatisfiable: "ScheduleAnyway",
    labelSelector: { matchLabels },
  }));

/**
 * On the host's network, a new pod has to wait for the old one's ports: with the usual order, where
 * the new one comes first, a roll-out never ends when there are no more machines than pods.
 */
export const strategy = {
  type: "RollingUpdate",
  rollingUpdate: { maxSurge: 0, maxUnavailable: 1 },
};

/**
 * Sends a pod on the host's network to the API by its name, as the kubelet goes.
 *
 * The usual way is the Service's address, which kube-proxy has to program first; and kube-proxy may
 * wait for the very addresses that the cloud provider is about to give the node.
 */
export const apiServerEnv = ({ name, port }: ApiServer) => [
  { name: "KUBERNETES_SERVICE_HOST", value: name },
  { name: "KUBERNETES_SERVICE_PORT", value: String(port) },
];
