import * as cluster from "../../../components/cluster/roll-out";
import { awaitRollOuts, type RolledOut } from "../../../components/cluster/roll-out";
import { serveKubernetesApi } from "../../support/kubernetes-api";
import { RollOut } from "../../../components/add-ons/roll-out";
import { providerOf, Recorder } from "../../support/record";

const now = "2026-11-25T02:00:00.000Z";
const canal: RolledOut = { kind: "DaemonSet", namespace: "kube-system", name: "canal" };
const controllers: RolledOut = { ...canal, kind: "Deployment", name: "controllers" };
const everybody = { desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3 };

type Status = Readonly<Record<string, number>>;

/** Of each look at it the next one; the last one stays. */
let daemonSet: Status[];
let deployment: object;
let pods: readonly object[];
let nodes: { readonly name: string; readonly status: string; readonly since?: string }[];
let generation: number;

let kubeconfig: string;
const asked: string[] = [];
const said: string[] = [];
beforeAll(async () => {
  kubeconfig = await serveKubernetesApi(({ url = "" }, response) => {
    asked.push(url);
    const status = url.endsWith("/canal")
      ? daemonSet.length > 1
        ? daemonSet.shift()
        : daemonSet[0]
      : deployment;
    const selector = { matchLabels: { "k8s-app": "canal" } };
    const items = nodes.map(({ name, status, since }) => ({
      metadata: { name },
      status: { conditions: [{ type: "Ready", status, lastTransitionTime: since }] },
    }));
    const workload = {
      metadata: { generation },
      spec: { replicas: 1, selector },
      status: { observedGeneration: 1, ...status },
    };
    const lists = url.endsWith("/nodes") ? items : url.includes("/pods") ? pods : undefined;
    response.writeHead(200, { date: new Date(now).toUTCString() });
    response.end(JSON.stringify(lists ? { items: lists } : workload));
  });
});
beforeEach(() => {
  asked.length = said.length = 0;
  generation = 1;
  daemonSet = [everybody];
  deployment = { updatedReplicas: 1, availableReplicas: 1 };
  pods = [];
  nodes = ["cp-1", "workers-1", "workers-2"].map((name) => ({ name, status: "True" }));
  jest.spyOn(console, "error").mockImplementation((text) => void said.push(text));
});
afterEach(() => jest.restoreAllMocks());

const silent = (name: string, status = "Unknown", since = "2026-11-25T01:50:00Z") => {
  nodes = [...nodes.filter((one) => one.name !== name), { name, status, since }];
};
const wait = (patience = 0) => awaitRollOuts(kubeconfig, [canal, controllers], patience);

it("ends at once where all pods are there, and asks for no Node then", async () => {
  await wait();

  expect(asked.sort()).toEqual([
    "/apis/apps/v1/namespaces/kube-system/daemonsets/canal",
    "/apis/apps/v1/namespaces/kube-system/deployments/controllers",
  ]);
  expect(said).toEqual([]);
});

it.each(["Unknown", "False"])(
  "does not wait for a machine whose Node has been %s, and names it",
  async (status) => {
    silent("workers-2", status);
    daemonSet = [{ ...everybody, numberAvailable: 2 }];

    await wait();

    expect(said).toEqual([expect.stringMatching(/^pods on workers-2 were not waited for/)]);
  },
);

it("does not wait for new pods where one of a machine that is off is the one that may be unavailable", async () => {
  silent("workers-2");
  daemonSet = [{ ...everybody, updatedNumberScheduled: 0, numberAvailable: 2 }];

  await wait();

  expect(said).toHaveLength(1);
});

it.each<[string, Status]>([
  ["is not available", { ...everybody, numberAvailable: 2 }],
  ["is of another version", { ...everybody, updatedNumberScheduled: 2 }],
  ["does not exist", { desiredNumberScheduled: 3 }],
])("waits for each pod that %s, and ends when it is", async (_, before) => {
  daemonSet = [before, before, everybody];

  await wait(60_000);

  expect(daemonSet).toHaveLength(1);
  expect(said).toEqual([]);
});

it("waits for the other machines beside one that is off", async () => {
  silent("workers-2");
  daemonSet = [{ ...everybody, numberAvailable: 1 }];

  await expect(wait()).rejects.toThrow("DaemonSet kube-system/canal has stood still");
});

it("waits for as many minutes as its message says", async () => {
  daemonSet = [{ ...everybody, numberAvailable: 1 }];
  const looks = () => asked.filter((url) => url.endsWith("/canal")).length;
  const { now: clock } = Date;
  jest.spyOn(Date, "now").mockImplementation(() => clock() + looks() * 8 * 60_000);

  await expect(awaitRollOuts(kubeconfig, [canal])).rejects.toThrow("stood still for 15 minutes");

  expect(looks()).toBe(3);
});

it("waits for a machine that has just joined", async () => {
  silent("workers-2", "False", "2026-11-25T01:59:30Z");
  daemonSet = [{ ...everybody, numberAvailable: 2 }];

  await expect(wait()).rejects.toThrow("stood still");
});

it("waits until a Deployment has no pod of an earlier version beside the new one, which is available too", async () => {
  deployment = { replicas: 2, updatedReplicas: 1, availableReplicas: 1 };

  await expect(wait()).rejects.toThrow("Deployment kube-system/controllers has stood still");
});

it("waits until what was applied has been seen", async () => {
  generation = 2;

  await expect(wait()).rejects.toThrow("stood still");
});

it("waits for a Deployment whatever machine is off: its pods go elsewhere", async () => {
  silent("workers-2");
  deployment = { updatedReplicas: 1 };

  await expect(wait()).rejects.toThrow(
    /^Deployment kube-system\/controllers .*expected 1 pods, got 1 of its newest version, and 0 available\. See why by kubectl --namespace kube-system describe pods --selector k8s-app=canal/,
  );
});

const pod = (status: object, nodeName?: string) => ({
  metadata: { name: "one" },
  spec: { nodeName },
  status: { phase: "Running", ...status },
});
const container = (state: object, more: object = {}) => ({
  name: "c",
  ready: false,
  state,
  ...more,
});
const waiting = (reason: string, more: object = {}) => container({ waiting: { reason, ...more } });
const crashed = { lastState: { terminated: { exitCode: 3 } } };
const initialized = container({ terminated: { exitCode: 0 } });

it.each<[string, object]>([
  [
    "pod one: Pending; Unschedulable: 0/3 nodes are available",
    pod({
      phase: "Pending",
      conditions: [
        {
          ...{ type: "PodScheduled", status: "False" },
          ...{ reason: "Unschedulable", message: "0/3 nodes are available" },
        },
      ],
    }),
  ],
  [
    "pod one on cp-1: Pending; container c: ErrImagePull: not found",
    pod(
      { phase: "Pending", containerStatuses: [waiting("ErrImagePull", { message: "not found" })] },
      "cp-1",
    ),
  ],
  [
    "pod one on cp-1: Running; container c: CrashLoopBackOff, last exit code 3",
    pod(
      {
        initContainerStatuses: [initialized],
        containerStatuses: [{ ...waiting("CrashLoopBackOff"), ...crashed }],
      },
      "cp-1",
    ),
  ],
  [
    "pod one on cp-1: Running; container c: last exit code 1",
    pod({ containerStatuses: [container({ terminated: { exitCode: 1 } })] }, "cp-1"),
  ],
  [
    "pod one on cp-1: Running; container c: not ready",
    pod({ containerStatuses: [container({ running: {} })] }, "cp-1"),
  ],
])("names a pod that is not ready, and why: %s", async (reason, one) => {
  deployment = { updatedReplicas: 1 };
  const ready = pod({ conditions: [{ type: "Ready", status: "True" }] }, "workers-1");
  silent("workers-2");
  pods = [ready, one, pod({}, "workers-2")];

  await expect(wait()).rejects.toThrow(
    `got 1 of its newest version, and 0 available:\n  - ${reason}\nSee why by kubectl`,
  );
  expect(asked).toContain("/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dcanal");
});

it("names three pods, and how many more there are", async () => {
  deployment = { updatedReplicas: 1 };
  pods = Array(5).fill(pod({}, "cp-1"));

  await expect(wait()).rejects.toThrow(
    /available:\n( {2}- pod one on cp-1: Running\n){3} {2}- and 2 more pods that are not ready\nSee why/,
  );
});

it("says why the API server takes no pod of a Deployment", async () => {
  const message = 'pods "one" is forbidden: exceeded quota';
  deployment = { conditions: [{ type: "ReplicaFailure", status: "True", message }] };

  await expect(wait()).rejects.toThrow(`0 available:\n  - ${message}\n`);
});

it("goes on for as many machines as there are, as long as one more pod is there from time to time", async () => {
  const steps = [0, 1, 2, 3].map((updated) => ({ ...everybody, updatedNumberScheduled: updated }));
  daemonSet = [...steps];

  // Each look comes after more than half of that.
  await wait(3000);

  // One that comes and goes is none more.
  daemonSet = [1, 0, 1, 0, 1].map((updated) => steps[updated]!);
  await expect(wait(3000)).rejects.toThrow("stood still");
  expect(daemonSet.length).toBeGreaterThan(1);
});

it("takes the pods of before a change for no progress: it replaces them one by one", async () => {
  generation = 2;
  const steps = [0, 1, 2, 3].map((updated) => ({ updatedNumberScheduled: updated }));
  const all = { ...everybody, observedGeneration: 2 };
  daemonSet = [everybody, ...steps.map((step) => ({ ...all, ...step }))];
  deployment = { ...deployment, observedGeneration: 2 };

  await wait(3000);

  expect(daemonSet).toHaveLength(1);
});

describe("the resource of a roll-out", () => {
  /** What the engine's plugin makes of the resource's own text, and what it waits for instead of waiting. */
  async function provider() {
    const recorder = await Recorder.start();
    const target = { kind: "DaemonSet", namespace: "kube-system", name: "canal" } as const;
    new RollOut(
      "roll-out",
      { targets: [{ ...target, spec: { paused: false } }], runs: ["a/1"], kubeconfig: "k" },
      { transformations: [recorder.watch] },
    );
    const { inputs } = await recorder.only("pulumi-nodejs:dynamic/zoned:RollOut");
    const { __provider: _, ...own } = inputs;
    const { create, update, diff } = providerOf({ inputs });
    return { target, inputs: own, create: create!, update: update!, diff: diff! };
  }

  let awaited: unknown[];
  beforeEach(() => {
    awaited = [];
    jest.spyOn(cluster, "awaitRollOuts").mockImplementation(async (...args) => {
      await new Promise(setImmediate);
      awaited.push(args);
    });
  });

  it("waits when it is created, and again when it is for something else", async () => {
    const { create, update, inputs, target } = await provider();

    expect(await create(inputs)).toEqual({ id: "awaited", outs: inputs });
    expect(await update("awaited", inputs, inputs)).toEqual({ outs: inputs });
    expect(awaited).toEqual([
      ["k", [target]],
      ["k", [target]],
    ]);
  });

  it("changes for another machine, run or specification, and for no other kubeconfig", async () => {
    const { diff, inputs } = await provider();

    expect(await diff("awaited", inputs, { ...inputs, kubeconfig: "l" })).toEqual({
      changes: false,
    });
    expect(await diff("awaited", inputs, { ...inputs, awaitedFor: "else" })).toEqual({
      changes: true,
    });
  });

  it("is awaited again once it has failed, also where the change is taken back", async () => {
    const { update, diff, inputs } = await provider();
    jest.spyOn(cluster, "awaitRollOuts").mockRejectedValue(new Error("it has stood still"));

    const changed = { ...inputs, awaitedFor: "else" };
    const failed = await update("awaited", inputs, changed).catch((thrown: object) => thrown);

    // The SDK makes ErrorResourceInitFailed of these, and the engine writes the properties into its state.
    expect(failed).toMatchObject({ id: "awaited", reasons: ["it has stood still"] });
    for (const next of [inputs, changed])
      expect(await diff("awaited", failed.properties, next)).toEqual({ changes: true });
  });

  it("fails by its message alone, so that the next update waits again", async () => {
    const { create, inputs } = await provider();
    jest.spyOn(cluster, "awaitRollOuts").mockRejectedValue(new Error("it has stood still"));

    const error = await create(inputs).catch((thrown: Error) => thrown);

    expect(`${error.stack}${error.message}`).toBe("it has stood still");
  });
});
