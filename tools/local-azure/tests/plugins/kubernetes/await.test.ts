import { podProblem } from "../../../plugins/kubernetes/await/diagnosis";
import { readinessRuleOf } from "../../../plugins/kubernetes/await/readiness";
import { Properties } from "../../../plugins/protocol/values";

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
const [first, second] = [replicaSet("1", 3), replicaSet("2", 3)];
const late = "its controller has not seen the change yet";
const isTrue = (type: string) => ({ ...everywhere, conditions: [{ type, status: "True" }] });
const unavailable = { ...available, status: "False", reason: "MinimumReplicasUnavailable" };
const ended = { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } };

it.each<[says: string | undefined, what: string, object: Properties, others?: Properties[]]>([
  [undefined, "a first ReplicaSet, which is no rollout", deployment("1", [available]), [first]],
  [
    ...([undefined, "a Deployment that has rolled out"] as const),
    deployment("2", [available, rolledOut]),
    [replicaSet("1", 0, 0), second],
  ],
  [
    ...([undefined, "one while a pod of the old version is still ending"] as const),
    deployment("2", [available, rolledOut], { replicas: 4, updatedReplicas: 3 }),
    [replicaSet("1", 1, 1), second],
  ],
  [
    late,
    "one whose controller is late",
    deployment("1", [available], { observedGeneration: 1 }),
    [first],
  ],
  [
    ...(["its rollout is not complete (ReplicaSetUpdated)", "one during its rollout"] as const),
    deployment("2", [available, { ...rolledOut, reason: "ReplicaSetUpdated" }]),
    [second],
  ],
  [
    "its condition Available is not true (MinimumReplicasUnavailable)",
    "one that is not available",
    deployment("1", [unavailable]),
    [first],
  ],
  [
    ...(["its ReplicaSet of revision 2 does not exist yet", "one without it"] as const),
    deployment("2", [available, rolledOut]),
    [first],
  ],
  [
    "2 of 3 pods are ready",
    "pods that are not",
    deployment("1", [available]),
    [replicaSet("1", 2)],
  ],
  [undefined, "no pods", deployment("1", [available]), [replicaSet("1", undefined, 0)]],
  [undefined, "a DaemonSet on all nodes", daemonSet(everywhere)],
  [late, "one before its controller came", daemonSet({ observedGeneration: 0 })],
  [late, "a newer status than generation", daemonSet({ ...everywhere, observedGeneration: 3 })],
  [
    "2 of 3 nodes have its pod ready",
    ...(["the last not ready", daemonSet({ ...everywhere, numberReady: 2 })] as const),
  ],
  [
    "2 of 3 nodes have its pod",
    ...(["a node without", daemonSet({ ...everywhere, currentNumberScheduled: 2 })] as const),
  ],
  [
    "2 of 3 nodes have its pod available",
    ...(["one not for long enough", daemonSet({ ...everywhere, numberAvailable: 2 })] as const),
  ],
  [
    "1 of 3 nodes have the new version of its pod",
    ...(["an old pod", daemonSet({ ...everywhere, updatedNumberScheduled: 1 })] as const),
  ],
  [
    "its controller has not counted its nodes yet",
    ...(["no count", daemonSet({ desiredNumberScheduled: undefined })] as const),
  ],
  ["its condition Reconciling is true", "somebody at work", daemonSet(isTrue("Reconciling"))],
  ["its condition Stalled is true", "one that is stalled", daemonSet(isTrue("Stalled"))],
  ["it is being deleted", "one that is", { ...daemonSet(everywhere), ...ended }],
  [
    "not awaited",
    "a definition",
    conditions("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
  ],
  ["not awaited", "an aggregated API", conditions("apiregistration.k8s.io/v1", "APIService")],
  ["not awaited", "a Namespace", { apiVersion: "v1", kind: "Namespace" }],
  ["not awaited", "a ConfigMap", { apiVersion: "v1", kind: "ConfigMap" }],
])("says %s of %s", async (says, _, object, others = []) => {
  expect(await verdict(object, {}, others)).toBe(says);
});

it("does not wait for an object with the annotation skipAwait", async () => {
  const annotations = { "pulumi.com/skipAwait": "true" };

  expect(await verdict(deployment("1", []), annotations)).toBe("not awaited");
});

const pod = (status: object, nodeName = "n1") => ({
  metadata: { name: "web-1" },
  spec: { nodeName },
  status: { phase: "Running", ...status },
});
const waiting = (reason: string, more: object = {}, message?: string) => ({
  containerStatuses: [
    { name: "c", ready: false, state: { waiting: { reason, message } }, ...more },
  ],
});
const crashed = waiting("CrashLoopBackOff", { lastState: { terminated: { exitCode: 3 } } });
const initialized = [{ name: "i", ready: false, state: { terminated: { exitCode: 0 } } }];
const nowhere = { reason: "Unschedulable", message: "0/3 nodes are available" };

it.each<[says: string | undefined, object: Properties]>([
  [undefined, pod({ conditions: [{ type: "Ready", status: "True" }] })],
  [undefined, pod({ phase: "Succeeded" })],
  [
    "pod web-1: Pending; Unschedulable: 0/3 nodes are available",
    pod(
      { phase: "Pending", conditions: [{ type: "PodScheduled", status: "False", ...nowhere }] },
      "",
    ),
  ],
  [
    "pod web-1 on node n1: Running; container c: ErrImagePull: not found",
    pod(waiting("ErrImagePull", {}, "not found")),
  ],
  [
    "pod web-1 on node n1: Running; container c: CrashLoopBackOff, last exit code 3",
    pod({ initContainerStatuses: initialized, ...crashed }),
  ],
])("says %s of %j", (says, object) => {
  expect(podProblem(object)).toBe(says);
});
