import { testImage } from "../../mirror/images/wanted-images";
import { eventually, expectSame } from "./claim";
import type { RealCluster } from "./real-cluster";

const app = "survivor";

const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: app, namespace: "default" },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app } },
    template: {
      metadata: { labels: { app } },
      spec: {
        nodeSelector: { "zoned-suite/pool": "workers" },
        containers: [{ name: app, image: testImage, command: ["sleep", "1000000"] }],
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
    const pods = await cluster.get<Pod>("pods", "--selector", `app=${app}`);
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
    await cluster.kubectl(["scale", `deployment/${app}`, "--replicas", String(replicas)]);
    await running(cluster, replicas);
  }
}

async function containerOf(cluster: RealCluster): Promise<object> {
  const [pod] = await running(cluster, 1);
  const { containerID, restartCount } = pod!.status.containerStatuses![0]!;
  return { containerID, restartCount };
}
