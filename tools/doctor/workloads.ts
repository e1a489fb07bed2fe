import type { KubernetesObject } from "../../components/cluster/kubernetes-api";
import type { Check } from "./check";
import type { ClusterState, Workload } from "./cluster-state";

const pendingLimitMinutes = 10;

/** Where this program and kubeadm put add-ons; other workloads are their owners' concern. */
const addOnNamespaces = [
  "kube-system",
  "kube-flannel",
  "calico-system",
  "calico-apiserver",
  "tigera-operator",
];

export function rollOuts({ daemonSets, deployments }: ClusterState): Check {
  const ours = ({ metadata }: Workload) => addOnNamespaces.includes(metadata.namespace ?? "");
  const workloads = [
    ...daemonSets.filter(ours).map((one) => ({
      ...{ one, kind: "daemonset", wanted: one.status?.desiredNumberScheduled },
      ready: one.status?.numberReady,
      updated: one.status?.updatedNumberScheduled,
    })),
    ...deployments.filter(ours).map((one) => ({
      ...{ one, kind: "deployment", wanted: one.spec?.replicas ?? 1 },
      ready: one.status?.readyReplicas,
      updated: one.status?.updatedReplicas,
    })),
  ];
  return {
    name: "add-ons",
    saw: `${workloads.length} DaemonSets and Deployments, all pods ready and up to date`,
    problems: workloads.flatMap(({ one, kind, wanted, ready = 0, updated = 0 }) => {
      const { namespace, name } = one.metadata;
      const what = `${kind} ${namespace}/${name}`;
      const fix = `kubectl -n ${namespace} describe ${kind} ${name}`;
      if (!isObserved(one) || wanted === undefined) {
        return [{ saw: `${what} has a change that no controller has seen`, fix }];
      }
      if (ready < wanted) return [{ saw: `${what} has ${ready} of ${wanted} pods ready`, fix }];
      if (updated < wanted) {
        return [{ saw: `${what} has ${updated} of ${wanted} pods up to date`, fix }];
      }
      return [];
    }),
  };
}

const isObserved = ({ metadata, status }: Workload): boolean =>
  (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);

export function pendingPods({ pendingPods: pods, now }: ClusterState): Check {
  const minutes = ({ metadata }: KubernetesObject) =>
    Math.floor((now - Date.parse(metadata.creationTimestamp ?? "")) / 60_000);
  const old = pods.filter((pod) => minutes(pod) >= pendingLimitMinutes);
  return {
    name: "pending pods",
    saw: `none for ${pendingLimitMinutes} minutes or longer`,
    problems: old.map((pod) => {
      const { namespace, name } = pod.metadata;
      const why = pod.status?.conditions?.find(
        ({ status, message }) => status === "False" && message,
      );
      return {
        saw: `pod ${namespace}/${name} is Pending for ${minutes(pod)} minutes${why ? `: ${why.message}` : ""}`,
        fix: `kubectl -n ${namespace} describe pod ${name}`,
      };
    }),
  };
}
