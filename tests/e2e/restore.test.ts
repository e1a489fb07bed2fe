import { asPlanned, LocalCloud, unchanged } from "./local-cloud";

jest.setTimeout(1_200_000);

const small = {
  cni: "flannel",
  cloudProvider: false,
  diskDriver: false,
  storageClasses: false,
  controlPlaneCount: 3,
  workerPools: [{ name: "workers", count: 1, size: "Standard_B2s" }],
  apiAccessCidrs: ["203.0.113.0/24"],
  sshPublicKey:
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILNfwl00yhHyj+EIF4C2SvRcENYQs34j+sgCl1EG/LXB e2e@zoned.example",
};
const controlPlanes = [1, 2, 3].map((number) => `zoned-dev-cp-${number}`);
const worker = "zoned-dev-workers-1";

interface VirtualMachine {
  readonly properties: { readonly vmId: string };
}

interface Node {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly status: { readonly conditions: readonly { type: string; status: string }[] };
}

describe("a cluster whose control planes are all lost", () => {
  let cloud: LocalCloud;
  let settings: Record<string, unknown>;
  let before: { vmId: string; nodes: Map<string, string> };

  const vmIdOf = async (name: string): Promise<string> => {
    const vm = await cloud.inGroup("GET", `/providers/Microsoft.Compute/virtualMachines/${name}`);
    return (vm as VirtualMachine).properties.vmId;
  };
  const nodes = async (): Promise<Map<string, string>> =>
    new Map((await cloud.get<Node>("nodes")).map(({ metadata }) => [metadata.name, metadata.uid]));
  const configMaps = async (): Promise<string[]> =>
    (await cloud.get<Node>("configmaps")).map(({ metadata }) => metadata.name);

  beforeAll(async () => {
    cloud = await LocalCloud.start("dev", small);
    settings = { ...small, etcdBackups: await cloud.container("backups", "etcd") };
    await cloud.stack.configure(settings);
    asPlanned(await cloud.stack.up());
    await cloud.kubectl("create", "configmap", "a");
    await cloud.snapshot("cp-1");
    await cloud.kubectl("create", "configmap", "b");
    before = { vmId: await vmIdOf(worker), nodes: await nodes() };
    for (const name of controlPlanes) {
      await cloud.inGroup("DELETE", `/providers/Microsoft.Compute/virtualMachines/${name}`);
    }
  });
  afterAll(() => cloud?.stop());

  it("is told to name a snapshot, and by that has all that was in it, and its workers", async () => {
    const lost = await cloud.stack.preview();
    expect(await cloud.obey(`${lost.stdout}${lost.stderr}`, /config set restoreFrom \w+/)).toBe(
      "config set restoreFrom latest",
    );

    asPlanned(await cloud.stack.up());

    expect(await configMaps()).toContain("a");
    expect(await configMaps()).not.toContain("b");
    expect(await vmIdOf(worker)).toBe(before.vmId);
    const after = await nodes();
    expect([...after.keys()].sort()).toEqual([...controlPlanes, worker]);
    // The same Node for the worker, and another one for each machine that is another.
    expect([...after].filter(([name, uid]) => before.nodes.get(name) === uid)).toEqual([
      [worker, before.nodes.get(worker)],
    ]);
    const ready = ({ status }: Node) =>
      status.conditions.some(({ type, status: is }) => type === "Ready" && is === "True");
    expect((await cloud.get<Node>("nodes")).filter((node) => !ready(node))).toEqual([]);
  });

  it("is not restored again, with the setting or without it", async () => {
    unchanged(await cloud.stack.up());
    await cloud.stack.configure(settings);
    unchanged(await cloud.stack.up());
  });
});
