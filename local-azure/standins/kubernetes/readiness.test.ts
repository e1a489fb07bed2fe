import { Properties } from "../protocol/values";
import { judgeOf } from "./readiness";

const verdict = (object: Properties, annotations: Record<string, string> = {}) => {
  const judge = judgeOf({ ...object, metadata: { annotations } });
  return judge ? judge({ ...object, metadata: { generation: 2 } }) : "not awaited";
};

const deployment = (status: Properties, spec: Properties = { replicas: 3 }) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  spec,
  status: { observedGeneration: 2, ...status },
});
const complete = { replicas: 3, updatedReplicas: 3, availableReplicas: 3 };

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
const crd = (...list: Properties[]) =>
  conditions("apiextensions.k8s.io/v1", "CustomResourceDefinition", ...list);
const accepted = { type: "NamesAccepted", status: "True" };

it.each([
  { what: "a complete Deployment", object: deployment(complete), says: undefined },
  {
    what: "a Deployment whose controller is late",
    object: deployment({ ...complete, observedGeneration: 1 }),
    says: "its controller has not seen the change yet",
  },
  {
    what: "a Deployment in the midst of its roll-out",
    object: deployment({ ...complete, updatedReplicas: 1 }),
    says: "1 of 3 pods are of the new version",
  },
  {
    what: "a Deployment with old pods",
    object: deployment({ ...complete, replicas: 4 }),
    says: "1 pods of the old version are still there",
  },
  {
    what: "a Deployment with pods that are not available",
    object: deployment({ ...complete, availableReplicas: 2 }),
    says: "2 of 3 pods are available",
  },
  {
    what: "a Deployment that wants no pods",
    object: deployment({}, { replicas: 0 }),
    says: undefined,
  },
  { what: "a Deployment with a default of one", object: deployment({}, {}), says: /^0 of 1 pods/ },
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
    what: "a definition that is served",
    object: crd(accepted, { type: "Established", status: "True" }),
    says: undefined,
  },
  {
    what: "a definition that is not served yet",
    object: crd(accepted, { type: "Established", status: "False", reason: "Installing" }),
    says: "its condition Established is not true (Installing)",
  },
  {
    what: "an aggregated API that is down",
    object: conditions("apiregistration.k8s.io/v1", "APIService"),
    says: "its condition Available is not true",
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
    what: "a Service inside the cluster",
    object: { apiVersion: "v1", kind: "Service", spec: { type: "ClusterIP" } },
    says: undefined,
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
])("says of $what: $says", ({ object, says }) => {
  if (says instanceof RegExp) {
    expect(verdict(object)).toMatch(says);
  } else {
    expect(verdict(object)).toBe(says);
  }
});

it("does not wait for what asks not to be waited for", () => {
  expect(verdict(deployment({}), { "pulumi.com/skipAwait": "true" })).toBe("not awaited");
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
])("waits for $wanted", ({ wanted, says }) => {
  const answer = verdict(thing, { "pulumi.com/waitFor": wanted });

  if (says instanceof RegExp) {
    expect(answer).toMatch(says);
  } else {
    expect(answer).toBe(says);
  }
});

it.each(["Ready", "[condition=Ready]", "jsonpath={.status[*].phase}"])(
  "refuses to wait for %s",
  (wanted) => {
    expect(() => verdict(thing, { "pulumi.com/waitFor": wanted })).toThrow(/^pulumi.com\/waitFor/);
  },
);
