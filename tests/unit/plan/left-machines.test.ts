import type { MachineState } from "../../../components/azure/state";
import { shownAs } from "../../../components/azure/shown";
import type { MachineChange } from "../../../components/plan/machine-changes";
import { LeftArgs, markLeft, unfinishedJoinProblems } from "../../../components/plan/left-machines";
import { machinesOf } from "../../../components/settings/topology";
import { type ApiAnswer, etcdctlPod, serveKubernetesObjects } from "../../support/kubernetes-api";
import { Recorder } from "../../support/record";
import { validSettings } from "../../support/sample";

/** As etcd lists it; one without a name has not started. */
const member = (name: string, address = "172.16.1.4") =>
  `1234, ${name === "" ? "unstarted" : "started"}, ${name}, https://${address}:2380, https://${address}:2379, false`;

const statusOf = (isReady: boolean) => ({
  conditions: [{ type: "Ready", status: isReady ? "True" : "Unknown" }],
});

describe("a join that has not ended", () => {
  const name = (word: string) => `zoned-test-${word}`;

  interface Scene {
    /** What the update does, such as `remove cp-2`. */
    readonly change?: string;
    /** The step of cp-2, or nothing where it has none. */
    readonly step?: string | null;
    /** Members that etcd lists; one without a name has not started, and is at the address of cp-2. */
    readonly members?: readonly string[];
    /** The VM of which Pulumi's state has cp-2 as a member. */
    readonly membershipOf?: string;
    readonly areReady?: boolean;
  }

  let scene: Scene;
  let kubeconfig: string;

  const address = "172.16.2.4";

  beforeAll(async () => {
    kubeconfig = await serveKubernetesObjects((request): ApiAnswer => {
      const { members = ["cp-1", "cp-2"], areReady = true } = scene;
      const status = statusOf(areReady);
      const nodes = ["cp-2", "cp-1"].map((word) => ({ metadata: { name: name(word) }, status }));
      if (request.pathname.endsWith("/nodes")) return [200, { items: nodes }];
      // One that joins may run none yet.
      if (request.pathname.endsWith(`etcd-${name("cp-2")}`)) return [404, {}];
      const lines = members.map((word) => member(word && name(word), address));
      return etcdctlPod(request, lines.join("\n"));
    });
  });

  async function problemsOf(of: Scene): Promise<string[]> {
    scene = of;
    const { change = "remove cp-2", step = "Succeeded", membershipOf } = of;
    const membership = (word: string, vmId: string) => ({
      type: "pulumi-nodejs:dynamic/zoned:Membership",
      outputs: { machine: name(word), vmId },
    });
    await Recorder.start({
      calls: {
        "pulumi:pulumi:readStackResourceOutputs": () => ({
          outputs: {
            1: { type: "azure-native:compute:VirtualMachine", outputs: { vmId: "second" } },
            2: membership("cp-1", "first"),
            ...(membershipOf === undefined ? {} : { 3: membership("cp-2", membershipOf) }),
          },
        }),
      },
    });
    const vm = (vmId: string, state: string | null): MachineState => ({
      size: "Standard_D2s_v5",
      vmId,
      ...(state !== null && { bootstrap: { state } }),
    });
    const [action, machine] = change.split(" ") as [MachineChange["action"], string];
    return unfinishedJoinProblems({
      settings: validSettings,
      changes: [{ action, machine: name(machine), reasons: [] }],
      azure: {
        machines: new Map([
          [name("cp-1"), vm("first", "Succeeded")],
          [name("cp-2"), vm("second", step)],
          [name("workers-1"), vm("third", "Succeeded")],
        ]),
        shown: new Map([
          [
            shownAs("azure-native:network:NetworkInterface", `${name("cp-2")}-nic`),
            { properties: { ipConfigurations: [{ properties: { privateIPAddress: address } }] } },
          ],
        ]) as never,
      },
      kubeconfig,
    });
  }

  it.each`
    what                                                       | scene
    ${"that Pulumi's state has as a member"}                   | ${{ membershipOf: "SECOND" }}
    ${"that etcd does not list, since its join has failed"}    | ${{ step: "Failed", members: ["cp-1"] }}
    ${"that has left etcd, and whose VM Azure did not delete"} | ${{ members: ["cp-1"] }}
    ${"that no update came to"}                                | ${{ step: null }}
    ${"that stays, and is configured otherwise"}               | ${{ change: "reconfigure cp-2" }}
    ${"beside which a worker leaves, which is no voter"}       | ${{ change: "remove workers-1" }}
  `("lets a control plane go $what", async ({ scene: of }) => {
    expect(await problemsOf(of)).toEqual([]);
  });

  it.each`
    what                                                    | scene                                        | says
    ${"that etcd lists and Pulumi's state does not have"}   | ${{}}                                        | ${/VM of zoned-test-cp-2, which has joined, or .*back \(pulumi config set controlPlaneCount 3\), run/}
    ${"that joined in the place of one that the state has"} | ${{ membershipOf: "before" }}                | ${/has joined/}
    ${"whose join failed after it"}                         | ${{ step: "Failed" }}                        | ${/has joined/}
    ${"that is made anew before it was known"}              | ${{ change: "replace cp-2" }}                | ${/Take the change back, run pulumi up until it ends well/}
    ${"whose member has not started"}                       | ${{ step: "Failed", members: ["cp-1", ""] }} | ${/has joined/}
    ${"that may join while the update is on its way to it"} | ${{ step: "Creating", members: ["cp-1"] }}   | ${/may still be joining/}
    ${"of which nobody can be asked"}                       | ${{ areReady: false }}                       | ${/may have joined \(no other control plane is Ready\)/}
  `("refuses to delete a control plane $what", async ({ scene: of, says }) => {
    expect(await problemsOf(of)).toEqual([expect.stringMatching(says)]);
  });
});

describe("machines that have left", () => {
  const now = "2026-11-23T17:41:28.123Z";
  const machines = machinesOf(validSettings);
  const controlPlanes = machines.filter(({ role }) => role === "control-plane");
  const workers = machines.filter(({ role }) => role === "worker").map(({ name }) => name);
  const [first = "", second = "", third = ""] = controlPlanes.map(({ name }) => name);

  interface Cluster {
    /** Names of Nodes, the first of which the others are compared with. */
    readonly nodes?: readonly string[];
    readonly drained?: string;
    /** One that was drained, and that somebody lets pods on again. */
    readonly uncordoned?: string;
    readonly unready?: string;
    /** Lines of etcd's own list. */
    readonly members?: readonly string[];
  }

  const names = [first, second, third];
  const all = machines.map(({ name }) => name);
  let cluster: Cluster;
  /** Control planes whose etcd was asked. */
  let asked: string[];
  let kubeconfig: string;

  beforeAll(async () => {
    kubeconfig = await serveKubernetesObjects((request): ApiAnswer => {
      const { nodes = all, members = names.map((name) => member(name)) } = cluster;
      const nodeOf = (name: string) => ({
        metadata: {
          name,
          annotations: [cluster.drained, cluster.uncordoned].includes(name)
            ? { "zoned/drained": "unschedulable" }
            : {},
        },
        spec: name === cluster.drained ? { unschedulable: true } : {},
        status: statusOf(name !== cluster.unready),
      });
      if (request.pathname === "/api/v1/nodes") return [200, { items: nodes.map(nodeOf) }];
      if (request.method === "PATCH") asked.push(request.body.spec.nodeName);
      return etcdctlPod(request, members.join("\n"));
    });
  });

  /** What Azure has of these control planes, of which one's step may not have ended well. */
  const azureWith = (failed?: string) => ({
    machines: new Map(
      all.map((name): [string, MachineState] => [
        name,
        { size: "s", bootstrap: { state: name === failed ? "Failed" : "Succeeded" } },
      ]),
    ),
  });

  const marked = async (of: Cluster, change: Partial<LeftArgs> = {}) => {
    cluster = of;
    asked = [];
    const { machines: found } = await markLeft({
      settings: validSettings,
      machines,
      azure: azureWith(),
      kubeconfig,
      now,
      ...change,
    });
    return [...found];
  };

  /** Who has left a cluster of three. */
  const left = async (of: Cluster, change: Partial<LeftArgs> = {}) =>
    (await marked(of, change)).filter(([, one]) => one.removedFromEtcd).map(([name]) => name);

  it.each<[string, Cluster]>([
    ["has no Node", { nodes: [first, third] }],
    ["is a Node that an update has begun to drain", { drained: second }],
    ["is a Node of which nothing is heard", { unready: second }],
  ])(
    "says of a control plane that it has left when etcd does not list it and it %s",
    async (_, cluster) => {
      expect(await left({ ...cluster, members: [member(first), member(third)] })).toEqual([second]);
      // By the member list of one that nobody has disturbed.
      expect(new Set(asked)).toEqual(new Set([first]));

      expect(await left(cluster)).toEqual([]);
    },
  );

  it("knows a member that has not started by its address", async () => {
    const { address } = controlPlanes[1]!;
    const members = [member(first), member("", address), member(third)];

    expect(await left({ nodes: [first, third], members })).toEqual([]);
  });

  it("runs nothing on a cluster whose control planes are all Ready Nodes", async () => {
    expect(await left({ members: [] })).toEqual([]);
    expect(asked).toEqual([]);
  });

  it("says nothing of a cluster that it cannot ask, or is not to ask", async () => {
    const cluster = { nodes: [first, third], members: [member(first), member(third)] };

    for (const change of [
      { kubeconfig: undefined },
      { settings: { skipHealthCheckUntil: "20261123T180000Z" } },
    ]) {
      expect(await left(cluster, change)).toEqual([]);
    }
    expect(await left({ nodes: [] })).toEqual([]);
    expect(asked).toEqual([]);
  });

  it("says nothing of one whose step has failed, which runs again by itself", async () => {
    const cluster = { nodes: [first, third], members: [member(first), member(third)] };

    expect(await left(cluster, { azure: azureWith(second) })).toEqual([]);
    expect(
      await left({ nodes: [first], members: [member(first)] }, { azure: azureWith(second) }),
    ).toEqual([third]);
  });

  describe("a machine that has no Node", () => {
    const [worker = ""] = workers;
    const lacking = async (of: Cluster, change: Partial<LeftArgs> = {}) =>
      (await marked(of, change)).filter(([, one]) => one.lacksNode).map(([name]) => name);
    const others = all.filter((name) => name !== worker);

    it("is marked where it runs and its step has ended well", async () => {
      expect(await lacking({ nodes: others })).toEqual([worker]);
      expect(await lacking({ nodes: all })).toEqual([]);
      expect(await lacking({ nodes: others }, { azure: azureWith(worker) })).toEqual([]);
    });

    it("is marked where it is a control plane that etcd lists, and all others are Ready", async () => {
      const members = [member(first), member(third)];

      expect(await lacking({ nodes: all.filter((name) => name !== second) })).toEqual([second]);
      expect(await lacking({ nodes: all.filter((name) => name.includes("workers")) })).toEqual([]);
      expect(
        await lacking({ nodes: all.filter((name) => name !== second && name !== third) }),
      ).toEqual([]);
      expect(
        await lacking({ nodes: all.filter((name) => name !== second), unready: third }),
      ).toEqual([]);
      expect(await lacking({ nodes: all.filter((name) => name !== second), members })).toEqual([]);
      const only = machines.filter(({ name }) => name !== second && name !== third);
      const nodes = all.filter((name) => name !== first);
      expect(await lacking({ nodes }, { machines: only })).toEqual([]);
    });

    it("is not while it is off, since it makes its Node when it starts", async () => {
      const azure = azureWith();
      azure.machines.set(worker, { ...azure.machines.get(worker)!, power: "deallocated" });

      expect(await lacking({ nodes: others }, { azure })).toEqual([]);
    });
  });

  it("marks a machine whose Node is drained, and also that one that is off was to be resized, as a change that is taken back leaves them", async () => {
    const drained = async (power: string, of: Cluster) => {
      const azure = azureWith();
      azure.machines.set(second, { ...azure.machines.get(second)!, power });
      const all = await marked(of, { azure });
      return (["isDrained", "stoppedForResize"] as const).map((mark) =>
        all.filter(([, one]) => one[mark]).map(([name]) => name),
      );
    };

    expect(await drained("running", { drained: second })).toEqual([[second], []]);
    expect(await drained("deallocated", { drained: second })).toEqual([[second], [second]]);
    expect(await drained("deallocated", { drained: third })).toEqual([[third], []]);
    expect(await drained("deallocated", { unready: second })).toEqual([[], []]);
    expect(await drained("deallocated", { uncordoned: second })).toEqual([[second], []]);
  });
});
