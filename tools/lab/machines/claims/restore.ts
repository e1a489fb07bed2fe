import type { KubernetesObject } from "../../../../components/cluster/kubernetes-api";
import { refused, unchanged, succeeded } from "../../local-cloud";
import { type Claim, eventually, expectAll, expectSaid, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { saw, Survivor, whileWriting } from "../workloads";
import { allReady } from "./nodes";
import { expectMembers } from "./three";

const account = "snapshots";
/** As the machines of the network reach it, by its name. */
const endpoint = `http://${account}.blob.core.windows.net`;

export const configMap = (name: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "default" },
});

/** The cluster has these ConfigMaps of before a snapshot, and not this one of after it. */
export async function expectRestored(
  cluster: RealCluster,
  saved: readonly string[],
  later: string,
): Promise<void> {
  await allReady(cluster, (await cluster.names()).length);
  const maps = await cluster.get<KubernetesObject>("configmaps");
  const names = maps.map(({ metadata }) => metadata.name);
  expectAll("ConfigMaps", names, saved);
  if (names.includes(later)) throw new Error("there is a ConfigMap of after the snapshot");
}

const report = async (cluster: RealCluster): Promise<Record<string, string>> =>
  JSON.parse(
    await cluster.kubectl([
      ...["get", "configmap", "zoned-etcd-snapshot", "--namespace", "kube-system"],
      ...["--output", "jsonpath={.data}"],
    ]),
  ) as Record<string, string>;

/** Has every control plane save etcd, which the one that leads does; returns what it says of that. */
export async function saveSnapshot(cluster: RealCluster): Promise<Record<string, string>> {
  for (const name of await cluster.names("control-plane")) {
    await cluster.inMachine(name, "systemctl start zoned-etcd-snapshot.service");
  }
  const said = await report(cluster);
  if (said["error"] !== undefined) throw new Error(said["error"]);
  return said;
}

/** What the claims of one chapter hand on to each other. */
interface Before {
  readonly container: { readonly container: string; readonly endpoint: string };
  readonly survivor: Survivor;
  readonly resourceVersion: string;
}

/** Of a cluster with so many control planes and one worker. */
export function restoreClaims(controlPlanes: 1 | 3): readonly Claim[] {
  let before: Before;
  return [
    {
      sentence:
        "in a cluster that one `pulumi up` makes, the control plane that leads etcd saves a snapshot to a container, and says so",
      isGround: true,
      check: async (cluster) => {
        const container = { container: await cluster.container(account), endpoint };
        await cluster.configure({ etcdBackups: container });
        succeeded(await cluster.up());
        const survivor = await Survivor.start(cluster);
        await cluster.apply(configMap("a"));
        const { name, bytes } = await saveSnapshot(cluster);
        await cluster.apply(configMap("b"));
        const [b] = await cluster.get<KubernetesObject>(
          "configmap",
          "--field-selector",
          "metadata.name=b",
        );
        before = { container, survivor, resourceVersion: b!.metadata.resourceVersion! };
        return `${name}, ${bytes} bytes`;
      },
    },
    {
      sentence: "with all control planes deleted, `pulumi up` refuses and names the setting",
      isGround: true,
      check: async (cluster) => {
        for (const name of await cluster.names("control-plane")) await cluster.ask("DELETE", name);
        expectSaid(refused(await cluster.up()), ["pulumi config set restoreFrom latest"]);
      },
    },
    {
      sentence: "with it, one `pulumi up` brings back what was saved, and nothing later",
      isGround: true,
      check: async (cluster) => {
        await cluster.configure({ etcdBackups: before.container, restoreFrom: "latest" });
        succeeded(await cluster.up());
        await expectRestored(cluster, ["a"], "b");
      },
    },
    {
      sentence: "the worker is the same machine, and its pod was never restarted",
      check: (cluster) => before.survivor.expectSame(cluster),
    },
    {
      sentence: "etcd's members are the control planes of now",
      check: async (cluster) => {
        const [first = ""] = await cluster.names("control-plane");
        await expectMembers(cluster, first);
      },
    },
    {
      sentence: "who watched before the loss is told to list anew, since what it saw is compacted",
      check: async (cluster) => {
        const from = `/api/v1/configmaps?watch=1&timeoutSeconds=5&resourceVersion=${before.resourceVersion}`;
        const said = await cluster.kubectl(["get", "--raw", from]).catch((e: Error) => e.message);
        expectSaid(said, ['"code":410']);
      },
    },
    ...(controlPlanes === 3 ? [restoredFromOneOfThree(() => before)] : []),
    {
      sentence: "a Deployment of before scales",
      check: (cluster) => before.survivor.scale(cluster, 3),
    },
    {
      sentence: "a second `pulumi up` changes nothing, with the setting or without it",
      check: async (cluster) => {
        unchanged(await cluster.up());
        await cluster.configure({ etcdBackups: before.container });
        unchanged(await cluster.up());
      },
    },
    ...(controlPlanes === 3 ? [leavesAfterSnapshot(() => before.container)] : []),
  ];
}

/** etcd has no majority, and what is left of it is given up for what was saved. */
const restoredFromOneOfThree = (before: () => Before): Claim => ({
  sentence:
    "with two of three control planes deleted, the same setting brings back what was saved only once the cluster is named as well, and the third is made anew",
  check: async (cluster) => {
    const { container, survivor } = before();
    await cluster.apply(configMap("c"));
    await saveSnapshot(cluster);
    await cluster.apply(configMap("d"));
    const [kept = "", ...lost] = await cluster.names("control-plane");
    const old = (await cluster.generations())[kept];
    for (const name of lost) await cluster.ask("DELETE", name);
    // The setting is still there.
    const said = refused(await cluster.up());
    expectSaid(said, ["as it was before this loss"]);
    const [, id] = /pulumi config set reinitialize (\S+),/.exec(said) ?? [];
    await cluster.configure({ etcdBackups: container, restoreFrom: "latest", reinitialize: id });
    succeeded(await cluster.up());
    await expectRestored(cluster, ["a", "c"], "d");
    if ((await cluster.generations())[kept] === old) throw new Error(`${kept} is the old machine`);
    await survivor.expectSame(cluster);
  },
});

/** Healthy control planes stay when etcd cannot be saved before they leave. */
const leavesAfterSnapshot = (container: () => Before["container"]): Claim => ({
  sentence:
    "two of three control planes leave etcd in order, after the one that stays has saved it each time, and no write is lost; then `pulumi up` changes nothing",
  check: async (cluster) => {
    await cluster.configure({ etcdBackups: container(), controlPlaneCount: 1 });
    const { written } = await whileWriting(cluster, async () => succeeded(await cluster.up()));
    const { error, machine, name } = await report(cluster);
    if (error !== undefined) throw new Error(error);
    const [left = "", ...others] = await cluster.names("control-plane");
    expectSame("control planes beside it", others, []);
    expectSame("who has saved", machine, left);
    await expectMembers(cluster, left);
    await eventually(120, cluster.signal, async () =>
      allReady(cluster, (await cluster.names()).length),
    );
    unchanged(await cluster.up());
    return `${name} of ${machine}; ${saw(written)}`;
  },
});
