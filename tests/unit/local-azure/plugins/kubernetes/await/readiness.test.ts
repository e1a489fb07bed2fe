import {
  readinessRuleOf,
  readRuleOf,
} from "../../../../../../local-azure/plugins/kubernetes/await/readiness";
import { Properties } from "../../../../../../local-azure/plugins/protocol/values";

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
  return rule
    ? rule(live, async (_, kind) => others.filter((one) => one.kind === kind))
    : "not awaited";
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
  kind: "ReplicaSet",
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
  readonly says?: string | RegExp;
}

const clusterIp = {
  apiVersion: "v1",
  kind: "Service",
  spec: { type: "ClusterIP", selector: { app: "it" } },
};

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
    what: "a DaemonSet with an old pod",
    object: daemonSet({ ...everywhere, updatedNumberScheduled: 1 }),
    says: "1 of 3 nodes have the new version of its pod",
  },
  {
    what: "a DaemonSet whose nodes nobody has counted",
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
    what: "a Job that failed",
    object: conditions("batch/v1", "Job", {
      type: "Failed",
      status: "True",
      reason: "BackoffLimitExceeded",
    }),
    says: "it has failed (BackoffLimitExceeded)",
  },
  {
    what: "a Service that selects no pods",
    object: { apiVersion: "v1", kind: "Service", spec: { type: "ClusterIP" } },
    says: undefined,
  },
  {
    what: "a Service without its Endpoints",
    object: clusterIp,
    says: "its Endpoints do not exist yet",
  },
  {
    what: "a Service whose pods do not exist yet",
    object: clusterIp,
    others: [{ kind: "Endpoints", metadata: { name: "it" } }],
    says: undefined,
  },
  {
    what: "a Service whose pods are not ready",
    object: clusterIp,
    others: [
      {
        kind: "Endpoints",
        metadata: { name: "it" },
        subsets: [{ addresses: [{ ip: "10.0.0.1" }], notReadyAddresses: [{ ip: "10.0.0.2" }] }],
      },
    ],
    says: "1 of the pods behind it are not ready",
  },
  {
    what: "a Service without its balancer",
    object: { apiVersion: "v1", kind: "Service", spec: { type: "LoadBalancer" } },
    says: /^no load balancer has been given to it/,
  },
  {
    what: "a ConfigMap",
    object: { apiVersion: "v1", kind: "ConfigMap" },
    says: "not awaited",
  },
])("says of $what: $says", async ({ object, others, says }: Case) => {
  const answer = await verdict(object, {}, others);

  expect(answer).toEqual(says instanceof RegExp ? expect.stringMatching(says) : says);
});

it("does not wait for an object with the annotation skipAwait", async () => {
  const annotations = { "pulumi.com/skipAwait": "true" };

  expect(await verdict(deployment("1", []), annotations)).toBe("not awaited");
});

const thing = {
  apiVersion: "example.com/v1",
  kind: "Thing",
  status: {
    phase: "Up",
    conditions: [{ type: "Ready", status: "False" }],
    "dotted.key": "x",
    ports: [{ port: 80 }],
  },
};

it.each([
  { wanted: "condition=Ready", says: "its condition Ready is False, and True is waited for" },
  { wanted: "condition=Ready=False", says: undefined },
  { wanted: "jsonpath={.status.phase}=Up", says: undefined },
  { wanted: "jsonpath={.status.phase}=Down", says: /^its \.status\.phase is "Up", and Down/ },
  { wanted: "jsonpath={.status.ports[0].port}=80", says: undefined },
  { wanted: "jsonpath={.status.dotted\\.key}", says: undefined },
  { wanted: "jsonpath={.status.missing}", says: "its .status.missing is not there" },
  {
    wanted: 'jsonpath={.status.conditions[?(@.type=="Ready")].status}=False',
    says: undefined,
  },
  {
    wanted: '["condition=Ready=False","jsonpath={.status.phase}=Down"]',
    says: /^its \.status\.phase/,
  },
])("waits for $wanted", async ({ wanted, says }) => {
  const answer = await verdict(thing, { "pulumi.com/waitFor": wanted });

  if (says instanceof RegExp) {
    expect(answer).toMatch(says);
  } else {
    expect(answer).toBe(says);
  }
});

it.each(["Ready", "[condition=Ready]", "jsonpath={.status[*].phase}"])(
  "refuses to wait for %s",
  async (wanted) => {
    const waiting = verdict(thing, { "pulumi.com/waitFor": wanted });

    await expect(waiting).rejects.toThrow(/^pulumi.com\/waitFor/);
  },
);

it("reports on a refresh what a kind's own rule says, whatever was waited for at its creation", async () => {
  const inputs = {
    ...deployment("1", []),
    metadata: { annotations: { "pulumi.com/waitFor": "x" } },
  };

  expect(readRuleOf(inputs)).toBe(readinessRuleOf(deployment("1", [])));
  expect(readRuleOf({ apiVersion: "v1", kind: "PersistentVolume" })).toBeUndefined();
});
