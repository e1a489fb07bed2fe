import { setTimeout as wait } from "node:timers/promises";

import { testImage } from "../../mirror/images/wanted-images";
import { succeeded } from "../local-cloud";
import { eventually, expectAll, expectSaid, expectSame, lowestDuring } from "./claim";
import type { RealCluster } from "./real-cluster";

const survivor = "survivor";

const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: survivor, namespace: "default" },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: survivor } },
    template: {
      metadata: { labels: { app: survivor } },
      spec: {
        nodeSelector: { "zoned-suite/pool": "workers" },
        containers: [{ name: survivor, image: testImage, command: ["sleep", "1000000"] }],
      },
    },
  },
};

interface Pod {
  readonly status: {
    readonly containerStatuses?: readonly {
      readonly containerID: string;
      readonly restartCount: number;
      readonly ready: boolean;
    }[];
  };
}

const running = async (cluster: RealCluster, count: number): Promise<Pod[]> =>
  eventually(600, cluster.signal, async () => {
    const pods = await cluster.get<Pod>("pods", "--selector", `app=${survivor}`);
    const ready = pods.filter(({ status }) => status.containerStatuses?.[0]?.ready);
    expectSame("pods that run", ready.length, count);
    return ready;
  });

const workerOf = async (cluster: RealCluster): Promise<[name: string, vmId: string]> => {
  const [name = ""] = await cluster.names("worker");
  return [name, (await cluster.generations())[name]!];
};

/** A pod on the cluster's one worker, which what happens to the control plane must not touch. */
export class Survivor {
  private constructor(
    private readonly container: object,
    private readonly vmId: string,
  ) {}

  static async start(cluster: RealCluster): Promise<Survivor> {
    const [worker, vmId] = await workerOf(cluster);
    await cluster.kubectl(["label", "node", worker, "zoned-suite/pool=workers"]);
    await cluster.apply(deployment);
    return new Survivor(await containerOf(cluster), vmId);
  }

  /** Fails unless it is on the same machine, and was never restarted. */
  async expectSame(cluster: RealCluster): Promise<void> {
    expectSame("the worker", (await workerOf(cluster))[1], this.vmId);
    expectSame("its pod's container", await containerOf(cluster), this.container);
  }

  /** Fails unless controllers, scheduler and kubelet make more of it. */
  async scale(cluster: RealCluster, replicas: number): Promise<void> {
    await cluster.kubectl(["scale", `deployment/${survivor}`, "--replicas", String(replicas)]);
    await running(cluster, replicas);
  }
}

async function containerOf(cluster: RealCluster): Promise<object> {
  const [pod] = await running(cluster, 1);
  const { containerID, restartCount } = pod!.status.containerStatuses![0]!;
  return { containerID, restartCount };
}

const writerNamespace = "zoned-writer";
const everyMs = 1_000;

/** What a client saw of a cluster while something was done to it. */
interface Written {
  /** Objects whose creation the API has acknowledged. */
  readonly acknowledged: readonly string[];
  readonly refused: number;
  /** The longest time without an acknowledgement, in seconds. */
  readonly silence: number;
}

export const saw = ({ acknowledged, refused, silence }: Written): string =>
  `${acknowledged.length} writes acknowledged, all there, ${refused} refused, at most ${silence} s without one`;

/** Creates an object once a second through the balancer, one request after another. */
async function write(cluster: RealCluster, signal: AbortSignal): Promise<Written> {
  const run = Date.now().toString(36);
  const acknowledged: string[] = [];
  let [refused, silence, last] = [0, 0, Date.now()];
  while (!signal.aborted) {
    const since = Date.now();
    const name = `${run}-${acknowledged.length + refused}`;
    try {
      await cluster.kubectl(["create", "configmap", name, "--namespace", writerNamespace]);
      acknowledged.push(name);
      silence = Math.max(silence, Date.now() - last);
      last = Date.now();
    } catch {
      refused += 1;
    }
    await wait(Math.max(0, since + everyMs - Date.now()), undefined, { signal }).catch(() => {});
  }
  return { acknowledged, refused, silence: Math.round(silence / 1000) };
}

/**
 * Writes while this work is done, and fails unless all that was acknowledged is there afterwards. A
 * write that was refused may be there or not.
 */
export async function whileWriting<T>(
  cluster: RealCluster,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly written: Written }> {
  await cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: writerNamespace } });
  const over = new AbortController();
  const signal = AbortSignal.any([cluster.signal, over.signal]);
  const writing = write(cluster, signal);
  let result: T;
  try {
    result = await work();
  } finally {
    over.abort();
    await writing;
  }
  const written = await writing;
  const listed = await cluster.kubectl([
    ...["get", "configmaps", "--namespace", writerNamespace, "--output", "name"],
  ]);
  const names = listed.split("\n").map((name) => name.replace("configmap/", ""));
  expectAll("acknowledged writes", names, written.acknowledged);
  return { result, written };
}

/** One stage of another key or CA by one update, on the same machines; returns what a client saw. */
export async function stage(cluster: RealCluster, says: string): Promise<string> {
  const before = await cluster.generations();
  const { result, written } = await whileWriting(cluster, () => cluster.up());
  expectSaid(succeeded(result).stdout, [says]);
  expectSame("machines", await cluster.generations(), before);
  return saw(written);
}

/** Where the pods are that have a budget. */
const budgetNamespace = "zoned-budget";
const labels = { app: "budget" };
const replicas = 3;
const atLeast = 2;

/** Three pods anywhere, of which two have to be there. */
const budgeted = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: budgetNamespace } },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "budget", namespace: budgetNamespace },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: "sleep", image: testImage, command: ["sleep", "infinity"] }],
        },
      },
    },
  },
  {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "budget", namespace: budgetNamespace },
    spec: { minAvailable: atLeast, selector: { matchLabels: labels } },
  },
];

const available = async (cluster: RealCluster): Promise<number> => {
  const deployment = ["get", "deployment", "budget", "--namespace", budgetNamespace];
  const path = "--output=jsonpath={.status.availableReplicas}";
  return Number((await cluster.kubectl([...deployment, path])) || "0");
};

/**
 * Does this work under writes and beside pods that have a budget, which fails unless it is kept as often as the API
 * answers; `said` is what a client saw of it.
 */
export async function underLoad<T>(
  cluster: RealCluster,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly said: string; readonly silence: number }> {
  const since = Date.now();
  const { result, written } = await whileWriting(cluster, async () => {
    await cluster.apply(...budgeted);
    await eventually(600, cluster.signal, async () =>
      expectSame("available pods", await available(cluster), replicas),
    );
    return lowestDuring(() => available(cluster), work);
  });
  const minutes = Math.round((Date.now() - since) / 60_000);
  const fewest = Math.min(replicas, result.lowest);
  if (fewest < atLeast)
    throw new Error(`${fewest} pods were available, and the budget is ${atLeast}`);
  return {
    result: result.result,
    said: `${minutes} min; ${saw(written)}; never fewer than ${fewest} of ${replicas} pods`,
    silence: written.silence,
  };
}
