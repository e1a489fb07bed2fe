import type { KubernetesObject } from "../../components/cluster/kubernetes-api";
import type { Check, Expected, Problem } from "./check";
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

/** What kubeadm makes, and no update makes anew. */
const ofKubeadm: Readonly<Record<string, string>> = {
  "DaemonSet kube-system/kube-proxy": "kube-proxy",
  "Deployment kube-system/coredns": "coredns",
};

const madeByKubeadm = (addOn: string): string =>
  "on a control plane, as root with KUBECONFIG=/etc/kubernetes/admin.conf: " +
  "kubectl -n kube-system get configmap kubeadm-config --output jsonpath={.data.ClusterConfiguration} >cluster.yaml; " +
  `kubeadm init phase addon ${addOn} --config cluster.yaml. Then pulumi up --refresh`;

const missing = ({ addOns = [] }: Expected, there: readonly string[]): Problem[] =>
  [...new Set([...Object.keys(ofKubeadm), ...addOns])]
    .filter((one) => !there.includes(one))
    .map((one) => {
      const addOn = ofKubeadm[one];
      const fix = addOn === undefined ? "pulumi up --refresh" : madeByKubeadm(addOn);
      return { saw: `${one} is not there`, fix };
    });

const nameOf = (kind: string, { metadata: { namespace, name } }: Workload): string =>
  `${kind} ${namespace}/${name}`;

export function rollOuts(expected: Expected, { daemonSets, deployments }: ClusterState): Check {
  const ours = ({ metadata }: Workload) => addOnNamespaces.includes(metadata.namespace ?? "");
  const workloads = [
    ...daemonSets.filter(ours).map((one) => ({
      ...{ one, kind: "DaemonSet", wanted: one.status?.desiredNumberScheduled },
      ready: one.status?.numberReady,
      updated: one.status?.updatedNumberScheduled,
    })),
    ...deployments.filter(ours).map((one) => ({
      ...{ one, kind: "Deployment", wanted: one.spec?.replicas ?? 1 },
      ready: one.status?.readyReplicas,
      updated: one.status?.updatedReplicas,
    })),
  ];
  const there = workloads.map(({ kind, one }) => nameOf(kind, one));
  const unready = workloads.flatMap(({ one, kind, wanted, ready = 0, updated = 0 }) => {
    const { namespace, name } = one.metadata;
    const what = nameOf(kind, one);
    const fix = `kubectl -n ${namespace} describe ${kind.toLowerCase()} ${name}`;
    if (!isObserved(one) || wanted === undefined) {
      return [{ saw: `${what} has a change that no controller has seen`, fix }];
    }
    if (ready < wanted) return [{ saw: `${what} has ${ready} of ${wanted} pods ready`, fix }];
    if (updated < wanted) {
      return [{ saw: `${what} has ${updated} of ${wanted} pods up to date`, fix }];
    }
    return [];
  });
  return {
    name: "add-ons",
    saw: `${workloads.length} DaemonSets and Deployments, all pods ready and up to date`,
    problems: [...missing(expected, there), ...unready],
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
