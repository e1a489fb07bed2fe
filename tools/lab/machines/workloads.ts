import { testImage } from "../../mirror/images/wanted-images";
import { eventually, expectSame, lowestDuring } from "./claim";
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

export const namespace = "zoned-budget";
const labels = { app: "budget" };
export const replicas = 3;
export const atLeast = 2;

/** Three pods anywhere, of which two have to be there. */
const budgeted = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "budget", namespace },
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
    metadata: { name: "budget", namespace },
    spec: { minAvailable: atLeast, selector: { matchLabels: labels } },
  },
];

const available = async (cluster: RealCluster): Promise<number> => {
  const deployment = ["get", "deployment", "budget", "--namespace", namespace];
  const path = "--output=jsonpath={.status.availableReplicas}";
  return Number((await cluster.kubectl([...deployment, path])) || "0");
};

/** The fewest pods that were available while this work was done, as often as the API answered. */
export async function fewestDuring<T>(
  cluster: RealCluster,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly fewest: number }> {
  await cluster.apply(...budgeted);
  await eventually(600, cluster.signal, async () =>
    expectSame("available pods", await available(cluster), replicas),
  );
  const { result, lowest } = await lowestDuring(() => available(cluster), work);
  return { result, fewest: Math.min(replicas, lowest) };
}
