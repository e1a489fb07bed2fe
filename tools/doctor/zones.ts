import { named, notReady } from "../../components/cluster/cluster-health";
import type { KubernetesObject } from "../../components/cluster/kubernetes-api";
import { type Check, controlPlanesOf, type Expected, type Problem, problemIf } from "./check";
import type { ClusterState } from "./cluster-state";

const zoneLabel = "topology.kubernetes.io/zone";
/** What a kubelet has asked Azure's disk driver on its machine, once. */
const diskZoneLabel = "topology.disk.csi.azure.com/zone";
const diskDriver = "csi-azuredisk-node";

const zoneOf = (node: KubernetesObject | undefined) => node?.metadata.labels?.[zoneLabel];

/** Why zones cannot be asked for: it is the cloud provider that labels Nodes. */
const withoutZones = ({ nodes }: ClusterState): string | undefined =>
  nodes.some((node) => zoneOf(node) !== undefined || node.spec?.providerID)
    ? undefined
    : "no Node has a zone label or a providerID, as without Azure's cloud provider";

export function nodeZones({ machines }: Expected, state: ClusterState): Check {
  const zones = new Set(machines.map(({ zone }) => zone));
  return {
    name: "zones",
    saw: `every Node in its machine's zone (${[...zones].sort().join(", ")})`,
    notAsked: withoutZones(state),
    problems: machines.flatMap(({ name, zone }) => {
      const node = named(state.nodes, name);
      const label = zoneOf(node);
      if (node === undefined || label === zone) return [];
      return {
        machine: name,
        saw: `its Node has the zone ${label ?? "(none)"}, expected ${zone}`,
        fix: "kubectl -n kube-system logs -l k8s-app=cloud-node-manager: it labels Nodes; then pulumi up --refresh",
      };
    }),
  };
}

/** A disk of a zone is attached to no Node that has another one, or none, for disks. */
export function diskZones({ machines }: Expected, { nodes, daemonSets }: ClusterState): Check {
  const isThere = daemonSets.some(({ metadata }) => metadata.name === diskDriver);
  return {
    name: "zones for disks",
    saw: "the disk driver is registered on every Node, with its machine's zone",
    notAsked: isThere ? undefined : `there is no DaemonSet ${diskDriver}`,
    problems: machines.flatMap(({ name, zone }): Problem[] => {
      const node = named(nodes, name);
      const label = node?.metadata.labels?.[diskZoneLabel];
      if (node === undefined || label === zone) return [];
      const ofPod = `-l app=${diskDriver} --field-selector spec.nodeName=${name}`;
      const problem =
        label === undefined
          ? {
              saw: `its kubelet has not registered the disk driver, so that no disk is attached there`,
              fix: `kubectl -n kube-system get pods ${ofPod}; kubectl describe of that pod, and the logs of its containers, say why`,
            }
          : {
              saw: `the disk driver has registered there with the zone ${label || "(none)"}, expected ${zone}: disks of its zone cannot be used on it`,
              // The kubelet refuses another zone than the one that the label has.
              fix: `kubectl label node ${name} ${diskZoneLabel}-; kubectl -n kube-system delete pod ${ofPod}`,
            };
      return [{ machine: name, ...problem }];
    }),
  };
}

const distinct = (zones: readonly (string | undefined)[]): string[] =>
  [...new Set(zones.filter((zone) => zone !== undefined))].sort();

export function controlPlaneSpread(expected: Expected, state: ClusterState): Check {
  const names = controlPlanesOf(expected);
  const used = distinct(names.map((name) => zoneOf(named(state.nodes, name))));
  const wanted = Math.min(names.length, distinct(expected.machines.map(({ zone }) => zone)).length);
  return {
    name: "control planes over zones",
    saw: `${names.length} in ${used.join(", ")}`,
    notAsked: withoutZones(state),
    problems: problemIf(used.length < wanted, {
      saw: `${names.length} in ${used.length} of ${wanted} zones (${used.join(", ")}): a zone that fails takes more of them than it should`,
      fix: "see the zones of Nodes above; zones in the settings say where control planes are",
    }),
  };
}

export function dnsSpread(state: ClusterState): Check {
  const ready = state.dnsPods.filter((pod) => notReady(pod).length === 0);
  const zones = distinct(ready.map(({ spec }) => zoneOf(named(state.nodes, spec?.nodeName ?? ""))));
  const available = distinct(state.nodes.map(zoneOf));
  const wanted = Math.min(2, state.dnsPods.length, available.length);
  return {
    name: "CoreDNS over zones",
    saw: `${ready.length} pods in ${zones.join(", ")}`,
    notAsked: withoutZones(state),
    problems: [
      ...problemIf(ready.length === 0, {
        saw: "no pod of CoreDNS is ready, so that no name resolves in the cluster",
        fix: "kubectl -n kube-system describe deployment coredns",
      }),
      ...problemIf(ready.length > 0 && zones.length < wanted, {
        saw: `all ${ready.length} ready pods are in ${zones.join(", ")}: without that zone no name resolves`,
        fix: "kubectl -n kube-system rollout restart deployment coredns",
      }),
    ],
  };
}
