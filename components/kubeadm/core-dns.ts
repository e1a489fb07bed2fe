import { stringify } from "yaml";

import { machinesForAddOns } from "../settings/topology";

/** kubeadm deploys this many pods. */
const replicas = 2;

/**
 * A patch for kubeadm's Deployment of CoreDNS: its pods run in different zones and on different
 * machines, as far as there are any.
 *
 * Without it, both start on the initial control plane, which is alone then, and stay there: nothing
 * moves a running pod. With it, the second pod waits for the first machine of another zone. Only pods
 * of the same revision count, so that a roll-out can begin anywhere.
 *
 * @returns undefined where there is one machine for them
 */
export function coreDnsPatch(
  settings: Parameters<typeof machinesForAddOns>[0],
): string | undefined {
  const hosts = machinesForAddOns(settings);
  const constraint = (topologyKey: string, domains: readonly string[]) =>
    new Set(domains).size < replicas
      ? []
      : [
          {
            topologyKey,
            maxSkew: 1,
            minDomains: replicas,
            whenUnsatisfiable: "DoNotSchedule",
            nodeTaintsPolicy: "Honor",
            labelSelector: { matchLabels: { "k8s-app": "kube-dns" } },
            matchLabelKeys: ["pod-template-hash"],
          },
        ];
  const topologySpreadConstraints = [
    ...constraint(
      "topology.kubernetes.io/zone",
      hosts.map(({ zone }) => zone),
    ),
    ...constraint(
      "kubernetes.io/hostname",
      hosts.map(({ name }) => name),
    ),
  ];
  if (topologySpreadConstraints.length === 0) return undefined;
  return stringify({ spec: { template: { spec: { topologySpreadConstraints } } } });
}
