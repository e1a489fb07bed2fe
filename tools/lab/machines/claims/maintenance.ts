import { isReady, type KubernetesObject } from "../../../../components/cluster/kubernetes-api";
import { type Claim, eventually, expectSame, lowestDuring } from "../claim";
import type { RealCluster } from "../real-cluster";
import { underLoad } from "../workloads";
import { bootOf } from "./life";
import { allReady } from "./nodes";
import { askEtcd } from "./three";

interface Event {
  readonly reason: string;
  readonly firstTimestamp: string;
  readonly source: { readonly component?: string };
  readonly involvedObject: { readonly name: string };
}

const patience = 40 * 60;

/** Reasons of what a machine has said of maintenance on its Node, in order; a kubelet says Rebooted besides. */
async function saidOf(cluster: RealCluster, machine: string): Promise<string[]> {
  const events = await cluster.get<Event>("events", "--namespace", "default");
  return events
    .filter(
      ({ involvedObject, source }) =>
        involvedObject.name === machine && source.component === "zoned-maintenance",
    )
    .sort((one, other) => one.firstTimestamp.localeCompare(other.firstTimestamp))
    .map(({ reason }) => reason);
}

const endsOf = async (cluster: RealCluster, machine: string): Promise<number> =>
  (await saidOf(cluster, machine)).filter((reason) => reason === "MaintenanceEnded").length;

/** Until these machines have said that they are back, and all take pods. */
async function areBack(cluster: RealCluster, before: ReadonlyMap<string, number>): Promise<void> {
  await eventually(patience, cluster.signal, async () => {
    for (const [machine, ends] of before) {
      expectSame(`ends of ${machine}'s maintenance`, await endsOf(cluster, machine), ends + 1);
    }
  });
  await eventually(600, cluster.signal, async () => {
    await allReady(cluster, (await cluster.names()).length);
    for (const { metadata, spec } of await cluster.get<KubernetesObject>("nodes")) {
      expectSame(`cordon of ${metadata.name}`, spec?.unschedulable ?? false, false);
      const mark = metadata.annotations?.["zoned/cordoned-for-maintenance"];
      expectSame(`mark on ${metadata.name}`, mark ?? "none", "none");
    }
  });
  const turns = ["get", "configmap", "zoned-maintenance", "--namespace", "kube-system"];
  expectSame(
    "machines that are down",
    await cluster.kubectl([...turns, "--output", "jsonpath={.data}"]),
    "",
  );
}

const readyNodes = async (cluster: RealCluster): Promise<number> =>
  (await cluster.get<KubernetesObject>("nodes")).filter(isReady).length;

/** Lets Azure do this to machines at once, under writes and with pods that have a budget. */
async function maintain(
  cluster: RealCluster,
  machines: readonly string[],
  type: string,
): Promise<string> {
  const before = new Map<string, number>();
  for (const machine of machines) before.set(machine, await endsOf(cluster, machine));
  const boots = await Promise.all(machines.map((machine) => bootOf(cluster, machine)));
  const { result, said } = await underLoad(cluster, () =>
    lowestDuring(
      () => readyNodes(cluster),
      async () => {
        await Promise.all(machines.map((machine) => cluster.event(machine, type)));
        await areBack(cluster, before);
      },
    ),
  );
  const after = await Promise.all(machines.map((machine) => bootOf(cluster, machine)));
  for (const [index, machine] of machines.entries()) {
    if (after[index] === boots[index]) throw new Error(`${machine} was not started anew`);
  }
  const all = (await cluster.names()).length;
  if (result.lowest < all - 1)
    throw new Error(`${result.lowest} of ${all} nodes were Ready at a time`);
  return said;
}

/** The machine that leads etcd. */
async function leader(cluster: RealCluster): Promise<string> {
  for (const name of await cluster.names("control-plane")) {
    const status = JSON.parse(await cluster.inMachine(name, askEtcd("maintenance/status"))) as {
      leader: string;
      header: { member_id: string };
    };
    if (status.leader === status.header.member_id) return name;
  }
  throw new Error("no member leads etcd");
}

/** Claims that Azure redeploys the machine that is found so, and that pods and writes bear it. */
const redeployed = (which: string, find: (cluster: RealCluster) => Promise<string>): Claim => ({
  sentence: `${which}, redeployed by Azure under load: its pods leave within their budget, it approves, comes back and takes pods, and no acknowledged write is lost`,
  check: async (cluster) => {
    const machine = await find(cluster);
    const said = await maintain(cluster, [machine], "Redeploy");
    expectSame(`what ${machine} said`, await saidOf(cluster, machine), [
      ...["RedeployScheduled", "RedeployAcknowledged", "MaintenanceEnded"],
    ]);
    return said;
  },
});

const frozen: Claim = {
  sentence: "a freeze drains nobody, and the Node shows it",
  check: async (cluster) => {
    const [machine = ""] = await cluster.names("control-plane");
    await cluster.event(machine, "Freeze");
    await eventually(120, cluster.signal, async () => {
      const reasons = await saidOf(cluster, machine);
      expectSame("whether it was noted", reasons.includes("FreezeScheduled"), true);
    });
    const nodes = await cluster.get<KubernetesObject>("nodes");
    expectSame("cordoned nodes", nodes.filter(({ spec }) => spec?.unschedulable).length, 0);
  },
};

export const workerMaintenanceClaims: readonly Claim[] = [
  redeployed("a worker", async (cluster) => (await cluster.names("worker"))[0]!),
  frozen,
];

export const maintenanceClaims: readonly Claim[] = [
  redeployed("the control plane that leads etcd", leader),
  {
    sentence:
      "two control planes that Azure is to reboot at the same moment go one after the other",
    check: async (cluster) => {
      const [one = "", two = ""] = await cluster.names("control-plane");
      return await maintain(cluster, [one, two], "Reboot");
    },
  },
  frozen,
];
