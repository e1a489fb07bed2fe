import { readinessRuleOf } from "../../../../plugins/kubernetes/await/readiness";
import { Properties } from "../../../../plugins/protocol/values";

const verdict = async (
  object: Properties,
  annotations: Record<string, string> = {},
  others: Properties[] = [],
) => {
  const rule = readinessRuleOf({ ...object, metadata: { annotations } });
  const live = {
    ...object,
    metadata: { name: "it", generation: 2, ...(object.metadata as object) },
  };
  return rule ? rule(live, async () => others) : "not awaited";
};

const revision = (of: string) => ({ annotations: { "deployment.kubernetes.io/revision": of } });
const available = { type: "Available", status: "True" };
const rolledOut = { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable" };

const deployment = (of: string, conditions: Properties[], status: Properties = {}) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: revision(of),
  status: { observedGeneration: 2, conditions, ...status },
});
const replicaSet = (of: string, readyReplicas?: number, replicas = 3) => ({
  metadata: { ...revision(of), ownerReferences: [{ kind: "Deployment", name: "it" }] },
  spec: { replicas },
  status: { readyReplicas },
});

const daemonSet = (status: Properties) => ({
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  status: { observedGeneration: 2, ...status },
});
const everywhere = {
  desiredNumberScheduled: 3,
  currentNumberScheduled: 3,
  updatedNumberScheduled: 3,
  numberAvailable: 3,
  numberReady: 3,
};

const conditions = (apiVersion: string, kind: string, ...list: Properties[]) => ({
  apiVersion,
  kind,
  status: { conditions: list },
});
interface Case {
  readonly object: Properties;
  readonly others?: Properties[];
  readonly says?: string;
}

it.each([
  {
    what: "a Deployment with its first ReplicaSet, which is no rollout",
    object: deployment("1", [available]),
    others: [replicaSet("1", 3)],
    says: undefined,
  },
  {
    what: "a Deployment that has rolled out",
    object: deployment("2", [available, rolledOut]),
    others: [replicaSet("1", 0, 0), replicaSet("2", 3)],
    says: undefined,
  },
  {
    what: "a Deployment that has rolled out while a pod of the old version is still ending",
    object: deployment("2", [available, rolledOut], { replicas: 4, updatedReplicas: 3 }),
    others: [replicaSet("1", 1, 1), replicaSet("2", 3)],
    says: undefined,
  },
  {
    what: "a Deployment whose controller is late",
    object: deployment("1", [available], { observedGeneration: 1 }),
    others: [replicaSet("1", 3)],
    says: "its controller has not seen the change yet",
  },
  {
    what: "a Deployment during its rollout",
    object: deployment("2", [available, { ...rolledOut, reason: "ReplicaSetUpdated" }]),
    others: [replicaSet("2", 3)],
    says: "its rollout is not complete (ReplicaSetUpdated)",
  },
  {
    what: "a Deployment that is not available",
    object: deployment("1", [
      { ...available, status: "False", reason: "MinimumReplicasUnavailable" },
    ]),
    others: [replicaSet("1", 3)],
    says: "its condition Available is not true (MinimumReplicasUnavailable)",
  },
  {
    what: "a Deployment without the ReplicaSet of its revision",
    object: deployment("2", [available, rolledOut]),
    others: [replicaSet("1", 3)],
    says: "its ReplicaSet of revision 2 does not exist yet",
  },
  {
    what: "a Deployment with pods that are not ready",
    object: deployment("1", [available]),
    others: [replicaSet("1", 2)],
    says: "2 of 3 pods are ready",
  },
  {
    what: "a Deployment that wants no pods",
    object: deployment("1", [available]),
    others: [replicaSet("1", undefined, 0)],
    says: undefined,
  },
  { what: "a DaemonSet on all nodes", object: daemonSet(everywhere), says: undefined },
  {
    what: "a DaemonSet before its controller came",
    object: daemonSet({ observedGeneration: 0 }),
    says: "its controller has not seen the change yet",
  },
  {
    what: "a DaemonSet whose last pod is not ready",
    object: daemonSet({ ...everywhere, numberReady: 2 }),
    says: "2 of 3 nodes have its pod ready",
  },
  {
    what: "a DaemonSet that a node has no pod of",
    object: daemonSet({ ...everywhere, currentNumberScheduled: 2 }),
    says: "2 of 3 nodes have its pod",
  },
  {
    what: "a DaemonSet whose last pod has not been ready for long enough",
    object: daemonSet({ ...everywhere, numberAvailable: 2 }),
    says: "2 of 3 nodes have its pod available",
  },
  {
    what: "a DaemonSet that somebody works on",
    object: daemonSet({ ...everywhere, conditions: [{ type: "Reconciling", status: "True" }] }),
    says: "its condition Reconciling is true",
  },
  {
    what: "a DaemonSet with an old pod",
    object: daemonSet({ ...everywhere, updatedNumberScheduled: 1 }),
    says: "1 of 3 nodes have the new version of its pod",
  },
  {
    what: "a DaemonSet whose nodes were not counted",
    object: daemonSet({ desiredNumberScheduled: undefined }),
    says: "its controller has not counted its nodes yet",
  },
  {
    what: "a DaemonSet that is being deleted",
    object: { ...daemonSet(everywhere), metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } },
    says: "it is being deleted",
  },
  {
    what: "a DaemonSet with a newer status than generation",
    object: daemonSet({ ...everywhere, observedGeneration: 3 }),
    says: "its controller has not seen the change yet",
  },
  {
    what: "a DaemonSet that is stalled",
    object: daemonSet({ ...everywhere, conditions: [{ type: "Stalled", status: "True" }] }),
    says: "its condition Stalled is true",
  },
  {
    what: "a definition that is not served yet",
    object: conditions("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    says: "not awaited",
  },
  {
    what: "an aggregated API that is down",
    object: conditions("apiregistration.k8s.io/v1", "APIService"),
    says: "not awaited",
  },
  {
    what: "a Namespace without a phase",
    object: { apiVersion: "v1", kind: "Namespace" },
    says: "not awaited",
  },
  {
    what: "a ConfigMap",
    object: { apiVersion: "v1", kind: "ConfigMap" },
    says: "not awaited",
  },
])("says of $what: $says", async ({ object, others, says }: Case) => {
  expect(await verdict(object, {}, others)).toBe(says);
});

it("does not wait for an object with the annotation skipAwait", async () => {
  const annotations = { "pulumi.com/skipAwait": "true" };

  expect(await verdict(deployment("1", []), annotations)).toBe("not awaited");
});
