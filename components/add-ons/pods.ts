import type { ApiServer } from "../api-server";
import type { Settings } from "../settings/settings";
import { controlPlaneMark } from "../settings/topology";

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
