import timers from "node:timers/promises";

import { KubernetesApi, NoAnswer } from "../../../components/cluster/kubernetes-api";
import { drain, retryTransient } from "../../../components/cluster/drain";
import { ApiAnswer, ApiRequest, serveKubernetesObjects } from "../../support/kubernetes-api";

// What is waited for takes a hundredth of its time.
const { setTimeout: pause } = timers;
jest.spyOn(timers, "setTimeout").mockImplementation((ms = 0) => pause(ms / 100) as never);

interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly annotations?: object;
    readonly ownerReferences?: readonly object[];
    deletionTimestamp?: string;
  };
  readonly status: { readonly phase: string };
}

/** A Kubernetes API with one Node, its pods, and a budget. */
class FakeApi {
  node: Record<string, any> | undefined = {
    metadata: { name: "one", labels: {}, annotations: {} },
    spec: {},
    status: { conditions: [{ type: "Ready", status: "True" }] },
  };
  pods: Pod[] = [];
  attachments: { metadata: object; spec: { nodeName: string } }[] = [];
  /** Pods that a budget protects, and pods that do not end. */
  readonly held = new Set<string>();
  readonly endless = new Set<string>();
  readonly evicted: string[] = [];

  /** How often it answers with 503, or 429, before it answers. */
  readonly refusals: number[] = [];

  answer({ method, url, body, contentType }: ApiRequest): ApiAnswer {
    const refusal = this.refusals.pop();
    if (refusal !== undefined) return [refusal, {}];
    if (url === "/api/v1/nodes/one") {
      if (this.node === undefined) return [404, {}];
      if (method === "PATCH" && contentType !== "application/merge-patch+json") return [415, {}];
      if (method === "PATCH") this.node = merged(this.node, body);
      return [200, this.node!];
    }
    if (url === "/api/v1/pods?fieldSelector=spec.nodeName%3Done") {
      return [200, { items: this.pods }];
    }
    if (url.endsWith("/volumeattachments")) return [200, { items: this.attachments }];
    const [, name = ""] = /\/pods\/(.*)\/eviction$/.exec(url) ?? [];
    if (this.held.has(name)) {
      const message = "Cannot evict pod as it would violate the pod's disruption budget.";
      const cause = "The disruption budget web needs 2 healthy pods and has 2 currently";
      return [429, { message, details: { causes: [{ message: cause }] } }];
    }
    if (body?.apiVersion !== "policy/v1" || body.kind !== "Eviction") return [400, {}];
    if (!this.pods.some(({ metadata }) => metadata.name === name)) return [404, {}];
    this.evicted.push(name);
    const pod = this.pods.find(({ metadata }) => metadata.name === name);
    if (pod && this.endless.has(name)) pod.metadata.deletionTimestamp = "2026-11-23T00:00:00Z";
    else this.pods = this.pods.filter((one) => one !== pod);
    return [201, {}];
  }
}

/** A merge patch of JSON. */
const merged = (object: any, patch: any): any =>
  Object.entries(patch).reduce(
    (all, [key, value]) => {
      if (value === null) {
        const { [key]: _gone, ...rest } = all;
        return rest;
      }
      return { ...all, [key]: typeof value === "object" ? merged(all[key] ?? {}, value) : value };
    },
    { ...object },
  );

const pod = (name: string, metadata: object = {}, phase = "Running"): Pod => ({
  metadata: { name, namespace: "default", ...metadata },
  status: { phase },
});

let fake: FakeApi;
let api: KubernetesApi;

beforeAll(async () => {
  const kubeconfig = await serveKubernetesObjects((request) => fake.answer(request));
  api = new KubernetesApi(kubeconfig);
});
afterAll(() => api.close());
beforeEach(() => {
  fake = new FakeApi();
});

const excluded = "node.kubernetes.io/exclude-from-external-load-balancers";
const drainFor = (minutes: number) => drain({ api, node: "one", minutes });

/** A drain that a budget does not let end. */
async function drainInVain(): Promise<void> {
  fake.pods = [pod("web")];
  fake.held.add("web");
  await expect(drainFor(0.01)).rejects.toThrow("could not be drained");
}

it("cordons a Node again that somebody has uncordoned after an update that was killed, and gives all of it back", async () => {
  const annotations = { "zoned/drained": "unschedulable excluded" };
  fake.node!["metadata"] = { name: "one", labels: { [excluded]: "" }, annotations };

  await drainFor(1);
  expect(fake.node).toMatchObject({ spec: { unschedulable: true } });

  await drainInVain();
  expect(fake.node!["spec"]).toEqual({});
  expect(fake.node!["metadata"]).toEqual({ name: "one", labels: {}, annotations: {} });
});

it("cordons the Node, takes it out of load balancers and evicts its pods", async () => {
  fake.pods = [pod("web-1"), pod("web-2")];

  await drainFor(1);

  expect(fake.evicted.sort()).toEqual(["web-1", "web-2"]);
  expect(fake.node).toMatchObject({
    metadata: {
      labels: { [excluded]: "" },
      annotations: { "zoned/drained": "unschedulable excluded" },
    },
    spec: { unschedulable: true },
  });
});

it("marks a Node whose machine is upgraded next, where no event of Azure is to come between", async () => {
  await drain({ api, node: "one", minutes: 1, isForUpgrade: true });

  expect(fake.node).toMatchObject({
    metadata: { annotations: { "zoned/drained": "unschedulable excluded upgrade" } },
  });
});

it("marks it so also where a killed update had drained it for something else", async () => {
  await drainFor(1);

  await drain({ api, node: "one", minutes: 1, isForUpgrade: true });

  expect(fake.node).toMatchObject({
    metadata: { annotations: { "zoned/drained": "unschedulable excluded upgrade" } },
  });
});

it("leaves static pods, pods of DaemonSets and pods that have ended", async () => {
  fake.pods = [
    pod("etcd", { annotations: { "kubernetes.io/config.mirror": "hash" } }),
    pod("agent", { ownerReferences: [{ kind: "DaemonSet", controller: true }] }),
    pod("job", {}, "Succeeded"),
    pod("failed-job", {}, "Failed"),
    pod("web"),
    pod("orphan", { ownerReferences: [{ kind: "DaemonSet" }] }),
  ];

  await drainFor(1);

  expect(fake.evicted.sort()).toEqual(["orphan", "web"]);
});

it("names pods and budgets when the time is over, and lets pods on the Node again", async () => {
  fake.pods = [pod("web-1"), pod("web-2"), pod("stuck")];
  fake.held.add("web-1");
  fake.endless.add("stuck");

  const error = await drainFor(0.02).catch((one: Error) => one);

  expect(String(error)).toMatch(/one could not be drained within 0.02 minutes/);
  expect(String(error)).toMatch(
    /default\/web-1: .*disruption budget\. The disruption budget web needs 2 healthy pods/,
  );
  expect(String(error)).toMatch(/default\/stuck: it was to end by 2026-11-23T00:00:00Z/);
  expect(String(error)).not.toMatch(/web-2/);
  expect(String(error)).toMatch(/pulumi config set drainMinutes 0\.08$/);
  expect(fake.node).toMatchObject({ metadata: { labels: {}, annotations: {} }, spec: {} });
  expect(fake.node?.["spec"]).not.toHaveProperty("unschedulable");
});

it("waits for a budget that lets its pods go after a while", async () => {
  fake.pods = [pod("web-1")];
  fake.held.add("web-1");
  setTimeout(() => fake.held.clear(), 50);

  await drainFor(1);

  expect(fake.pods).toEqual([]);
});

it("reverts nothing that others have set", async () => {
  fake.node = merged(fake.node, {
    metadata: { labels: { [excluded]: "mine" } },
    spec: { unschedulable: true },
  });

  await drainInVain();

  expect(fake.node?.["spec"]).toEqual({ unschedulable: true });
  expect(fake.node?.["metadata"].labels).toHaveProperty([excluded]);
});

it.each(["is not Ready", "is gone"])("evicts nobody where the Node %s", async (how) => {
  fake.pods = [pod("web-1")];
  if (how === "is gone") fake.node = undefined;
  else fake.node!["status"] = { conditions: [{ type: "Ready", status: "Unknown" }] };

  await drainFor(1);

  expect(fake.evicted).toEqual([]);
});

const saysNotReady = (minutes: number) => {
  const lastTransitionTime = new Date(Date.now() - minutes * 60_000).toISOString();
  fake.node!["status"] = { conditions: [{ type: "Ready", status: "False", lastTransitionTime }] };
};

it("waits also for a kubelet that says that it is not Ready, which may be over in a moment", async () => {
  saysNotReady(4);

  await drainInVain();

  fake.held.clear();
  await drainFor(1);
  expect(fake.evicted).toEqual(["web"]);
});

it("waits no longer for a kubelet that has said so for five minutes", async () => {
  fake.pods = [pod("web-1")];
  fake.held.add("web-1");
  setTimeout(() => saysNotReady(6), 20);

  await drainFor(1);

  expect(fake.pods).toHaveLength(1);
});

it("waits no longer for a machine that dies while it is drained", async () => {
  fake.pods = [pod("web-1")];
  fake.held.add("web-1");
  setTimeout(() => (fake.node = undefined), 20);

  await drainFor(1);

  expect(fake.pods).toHaveLength(1);
});

it("waits for volumes to be detached", async () => {
  fake.attachments = [{ metadata: {}, spec: { nodeName: "one" } }];
  let isDetached = false;
  setTimeout(() => {
    isDetached = true;
    fake.attachments = [{ metadata: {}, spec: { nodeName: "another" } }];
  }, 20);

  await drainFor(1);

  expect(isDetached).toBe(true);
});

it("asks again where the API is restarted or busy", async () => {
  fake.pods = [pod("web")];
  fake.refusals.push(500, 503, 429);

  await drainFor(1);

  expect(fake.evicted).toEqual(["web"]);
});

it("takes back what it has set itself, also when it was begun twice", async () => {
  await drainFor(1);
  await drainInVain();

  expect(fake.node).toMatchObject({ metadata: { labels: {}, annotations: {} }, spec: {} });
  expect(fake.node?.["metadata"].labels).not.toHaveProperty([excluded]);
  expect(fake.node?.["spec"]).not.toHaveProperty("unschedulable");
});

it("takes a pod for gone that ended before it could be evicted", async () => {
  fake.pods = [pod("web")];
  const pods = fake.pods;
  const answer = fake.answer.bind(fake);
  fake.answer = (request) => {
    if (request.url.endsWith("/eviction")) fake.pods = pods.slice(1);
    return answer(request);
  };

  await drainFor(0.01);

  expect(fake.evicted).toEqual([]);
});

describe("by a clock that only pauses move on", () => {
  let now: number;
  beforeEach(() => {
    now = Date.now();
    jest.spyOn(Date, "now").mockImplementation(() => now);
    jest.spyOn(timers, "setTimeout").mockImplementation(async (ms = 0) => (now += ms) as never);
  });
  afterEach(() => jest.restoreAllMocks());

  it("asks again for two minutes where nobody answers, and not for longer", async () => {
    const answersAfter = (seconds: number) => {
      const begins = now + seconds * 1000;
      return async () => {
        if (now < begins) throw new NoAnswer("the API does not answer", "silence");
        return "an answer";
      };
    };

    expect(await retryTransient(answersAfter(118))).toBe("an answer");
    await expect(retryTransient(answersAfter(125))).rejects.toThrow("does not answer");
  });

  it("gives pods as many minutes as it is told, and not more", async () => {
    const leavesAfter = (seconds: number) => {
      const ends = now + seconds * 1000;
      fake.pods = [pod("web")];
      fake.held.add("web");
      const { answer } = FakeApi.prototype;
      fake.answer = (...request) => {
        if (now >= ends) fake.held.clear();
        return answer.apply(fake, request);
      };
    };

    leavesAfter(58);
    await drainFor(1);
    expect(fake.evicted).toEqual(["web"]);

    leavesAfter(65);
    await expect(drainFor(1)).rejects.toThrow("could not be drained within 1 minutes");
  });

  it.each([
    [720, /or wait longer: pulumi config set drainMinutes 1440$/],
    [1440, /then run pulumi up again$/],
  ])("offers no more minutes than the setting takes: after %d", async (minutes, says) => {
    const ticks = jest.spyOn(timers, "setTimeout");
    ticks.mockImplementation(async (ms = 0) => (now += ms * 3600) as never);
    fake.pods = [pod("web")];
    fake.held.add("web");

    await expect(drainFor(minutes)).rejects.toThrow(says);
  });

  it("waits two minutes for volumes, and then goes on without", async () => {
    fake.attachments = [{ metadata: {}, spec: { nodeName: "one" } }];
    const begun = now;

    await drainFor(1);

    expect(Math.round((now - begun) / 1000)).toBe(120);
  });
});
