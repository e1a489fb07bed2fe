import { KubernetesApi } from "../../../../../components/cluster/kubernetes-api";
import { saveBeforeLeaving } from "../../../../../components/cluster/leave";
import {
  memberId,
  Members,
  type ObservedPeers,
  peerProblems,
  runEtcdctlPod,
  runSnapshotPod,
} from "../../../machines/simulated/cluster/members";
import { components } from "../../../machines/simulated/control-plane/static-pods";
import { vmOf } from "../../support/simulated/fixture";

type Vm = ReturnType<typeof vmOf>;
const vms = [1, 2, 3, 4, 5].map((index) => vmOf(`demo-cp-${index}`, "1", `172.16.${index}.4`));
const [one, two, three] = vms as [Vm, Vm, Vm];
const firstOf = (count: number) =>
  vms.slice(0, count).reduce((members, vm) => members.with(vm), new Members([]));
const all = firstOf(3);
const off = (vm: Vm) => ({ ...vm, isOff: true });

describe("members of etcd", () => {
  it.each([
    ["three of three", all, true],
    ["two of three", all.withDeleted(one), true],
    ["one of three", all.withDeleted(one).withDeleted(two), false],
    ["one of two", firstOf(2).withDeleted(two), false],
    ["one of one", firstOf(1), true],
    ["two healthy of three", all.withFailure(one.name, "etcd"), true],
    ["one healthy of two of three", all.withFailure(one.name, "etcd").withDeleted(two), false],
    [
      "two with another failure",
      all.withFailure(one.name, "kube-apiserver").withDeleted(two),
      true,
    ],
    [
      "one that is healthy again",
      all.withFailure(one.name, "etcd").withoutFailures(one.name).withDeleted(two),
      true,
    ],
    ["two of three, one off", all.withPower(off(one)), true],
    ["one of three, two off", all.withPower(off(one)).withPower(off(two)), false],
    ["one that is on again", all.withPower(off(one)).withPower(off(two)).withPower(one), true],
  ])("are a quorum: %s: %j", (_, members, haveQuorum) => {
    expect(members.haveQuorum).toBe(haveQuorum);
  });

  it("are in the list, dead ones too, until they are removed by name, and healthy when they are made anew", () => {
    const successor = vmOf(two.name, "2", two.privateAddress);
    const lost = all.withFailure(two.name, "etcd").withDeleted(two);

    expect([lost.has(two), lost.allGone, lost.list.length]).toEqual([false, false, 3]);
    expect(lost.without(successor).list).toHaveLength(2);
    expect(lost.without(successor).with(successor).has(successor)).toBe(true);
    expect(lost.withFailure(two.name, "etcd").list[1]).not.toHaveProperty("unhealthy");
    expect(lost.withDeleted(one).withDeleted(three).allGone).toBe(true);
  });
});

describe("a pod that runs etcdctl", () => {
  const find = (name: string) => vms.find((vm) => vm.name === name);

  const folder = "/etc/kubernetes/pki/etcd";
  const pod = (...commands: readonly (readonly string[])[]) => {
    const containers = commands.map((command, index) => ({
      name: `step-${index}`,
      command: ["etcdctl", "--endpoints=https://127.0.0.1:2379", ...command],
      volumeMounts: [{ name: "pki", mountPath: folder }],
    }));
    return {
      spec: {
        hostNetwork: true,
        initContainers: containers.slice(0, -1),
        containers: containers.slice(-1),
        volumes: [{ name: "pki", hostPath: { path: folder } }],
      },
    };
  };
  const run = (body: object, members = all) =>
    runEtcdctlPod(body, members, { vmOf: find, versionOf: () => "3.6.1" });

  it("removes the member whose id it is given, after what its init containers did", () => {
    const ended = run(pod(["move-leader", memberId(one)], ["member", "remove", memberId(three)]))!;

    expect(ended.exitCode).toBe(0);
    expect(ended.members.list.map(({ machine }) => machine)).toEqual(["demo-cp-1", "demo-cp-2"]);
    expect([...ended.outputs.keys()]).toEqual(["step-0", "step-1"]);
  });

  it("finds no leader past a member that does not answer", () => {
    const move = (...machines: readonly string[]) => {
      const urls = machines.map((name) => `https://${find(name)!.privateAddress}:2379`);
      const command = [`--endpoints=${urls.join(",")}`, "move-leader", memberId(one)];
      return run(pod(command), all.withFailure(two.name, "etcd"))!.exitCode;
    };

    expect(move(one.name, three.name, two.name)).toBe(0);
    expect(move(two.name, one.name, three.name)).toBe(1);
  });

  it("removes nobody where etcd would refuse", () => {
    const lost = all.withDeleted(two);

    for (const [members, id, says] of [
      [lost, memberId(three), "unhealthy cluster"],
      [all, "0123456789abcdef", "Member not found"],
    ] as const) {
      const ended = run(pod(["member", "remove", id]), members)!;
      expect(ended).toMatchObject({ exitCode: 1, output: expect.stringContaining(says), members });
    }
  });

  it("asks each member how it is, and fails where one does not serve", () => {
    const ask = (members: Members) => run(pod(["endpoint", "health", "--cluster"]), members)!;

    expect(ask(all).exitCode).toBe(0);
    const { exitCode, output } = ask(all.withFailure(two.name, "etcd"));
    expect(exitCode).toBe(1);
    expect(output.split("\n").map((line) => line.split(":").slice(0, 3).join(":"))).toEqual([
      "https://172.16.1.4:2379 is healthy",
      "https://172.16.2.4:2379 is unhealthy",
      "https://172.16.3.4:2379 is healthy",
      "Error: unhealthy cluster",
      "",
    ]);
    expect(ask(all.withFailure(two.name, "etcd-space")).output).toMatch(
      /172\.16\.1\.4:2379 is unhealthy: .*NOSPACE/,
    );
  });

  it("finds no certificates in a pod that does not mount them, and leaves other pods alone", () => {
    const { spec } = pod(["member", "list"]);

    expect(run({ spec: { ...spec, volumes: [] } })).toMatchObject({
      exitCode: 1,
      output: expect.stringContaining("ca.crt: no such file"),
    });
    expect(run({ spec: { containers: [{ name: "web" }] } })).toBeUndefined();
  });
});

describe("peers of a control plane that joins", () => {
  const conditions = (status: string) => ({
    conditions: [{ type: "Ready", status, message: "it" }],
  });
  const node = (name: string, status = "True") => ({
    metadata: { name, labels: { "node-role.kubernetes.io/control-plane": "" } },
    status: conditions(status),
  });
  const podOf = (name: string, status = "True") => ({
    metadata: { name },
    status: conditions(status),
  });
  const podsOf = (name: string) => components.map((component) => podOf(`${component}-${name}`));

  /**
   * The first of so many control planes sees the others, all healthy, and itself and a worker that are
   * not.
   */
  function seen(count: number): ObservedPeers & { readonly members: Members["list"] } {
    const names = vms.slice(0, count).map(({ name }) => name);
    const [first, ...others] = names as [string, ...string[]];
    return {
      own: first,
      members: firstOf(count).list,
      nodes: [
        node(first, "False"),
        { metadata: { name: "demo-workers-1", labels: {} }, status: conditions("False") },
        ...others.map((name) => node(name)),
      ],
      pods: others.flatMap(podsOf),
      awaitsReady: true,
    };
  }

  const seenByOne = seen(3);
  const of = (change: (members: Members) => Members, those = seenByOne) =>
    change(new Members(those.members)).list;
  const without = (name: string, all: ObservedPeers) =>
    all.nodes.filter(({ metadata }) => metadata.name !== name);

  it("finds no problem where all others are healthy, or where there are none", () => {
    expect([peerProblems(seenByOne), peerProblems(seen(1))]).toEqual([[], []]);
  });

  it.each<[string, Partial<ObservedPeers>, string]>([
    [
      "an unhealthy etcd",
      { members: of((all) => all.withFailure("demo-cp-2", "etcd")) },
      "etcd member demo-cp-2 is not healthy",
    ],
    [
      "a member whose machine is gone",
      { members: of((all) => all.withDeleted(vms[2]!)), nodes: without("demo-cp-3", seenByOne) },
      "etcd member demo-cp-3 is not healthy",
    ],
    [
      "etcd without space, its own too",
      { members: of((all) => all.withFailure("demo-cp-1", "etcd-space")) },
      "etcd member demo-cp-1: alarm NOSPACE",
    ],
    [
      "a Node that is not Ready",
      { nodes: [node("demo-cp-2", "Unknown"), node("demo-cp-3")] },
      "node demo-cp-2: Ready is Unknown it",
    ],
    [
      "a static pod that is not ready",
      { pods: [...seenByOne.pods.slice(1), podOf("etcd-demo-cp-2", "False")] },
      "static pod etcd-demo-cp-2 is not Ready",
    ],
    [
      "a static pod that is missing",
      { pods: seenByOne.pods.slice(1) },
      "static pod etcd-demo-cp-2 is not Ready",
    ],
  ])("finds %s", (_, change, line) => {
    expect(peerProblems({ ...seenByOne, ...change })).toEqual([line]);
  });

  it("does not ask for Ready where nobody knows when that can be", () => {
    const nodes = [node("demo-cp-2", "False"), node("demo-cp-3", "False")];

    expect(peerProblems({ ...seenByOne, nodes, awaitsReady: false })).toEqual([]);
  });

  it("lets one of five be missing, whose machine is gone, and not two, nor one whose machine is there", () => {
    const five = seen(5);
    const members = of((all) => all.withDeleted(vms[4]!), five);
    const gone = { ...five, members, nodes: without("demo-cp-5", five) };
    const both = of((all) => all.withDeleted(vms[4]!).withDeleted(vms[3]!), five);

    expect(peerProblems(gone)).toEqual([]);
    expect(peerProblems({ ...gone, nodes: five.nodes })).toEqual([
      "etcd member demo-cp-5 is not healthy",
    ]);
    expect(peerProblems({ ...gone, members: both, nodes: without("demo-cp-4", gone) })).toEqual([
      "etcd member demo-cp-4 is not healthy",
      "etcd member demo-cp-5 is not healthy",
    ]);
  });
});

describe("a pod that saves etcd", () => {
  /** The pod by which the program has a machine save etcd, whose Node names this architecture. */
  async function ofProgram(architecture = "amd64"): Promise<any> {
    let pod: unknown;
    const api: Partial<KubernetesApi> = {
      list: async () => [],
      find: async (path) =>
        path.includes("/etcd-")
          ? {
              metadata: { name: "etcd" },
              spec: { containers: [{ name: "etcd", image: "etcd:its-own" }] },
            }
          : {
              metadata: { name: "cp-1" },
              status: { phase: "Succeeded", nodeInfo: { systemUUID: "", architecture } },
            },
      apply: async (_, object) => ((pod = object), ""),
      get: async () => "",
      delete: async () => undefined,
    };
    await saveBeforeLeaving({ machine: "cp-2", kubeconfig: "" }, api as KubernetesApi, "cp-1");
    return structuredClone(pod);
  }

  const save = jest.fn(async () => undefined);
  beforeEach(() => save.mockClear());

  it("saves etcd where the program's pod asks for it", async () => {
    expect(await runSnapshotPod(await ofProgram(), save)).toMatchObject({ exitCode: 0 });
    expect(save).toHaveBeenCalledTimes(1);
  });

  it("saves etcd by the loader of the machine's own architecture, and by no other", async () => {
    const pod = await ofProgram("arm64");

    expect(await runSnapshotPod(pod, save, "Arm64")).toMatchObject({ exitCode: 0 });
    expect(await runSnapshotPod(pod, save, "x64")).toMatchObject({ exitCode: 128 });
    expect(save).toHaveBeenCalledTimes(1);
  });

  it.each<[string, (spec: any) => void, number]>([
    ["may not enter the machine", ({ containers }) => delete containers[0].securityContext, 125],
    ["has another folder of it", ({ volumes }) => (volumes[0].hostPath.path = "/opt"), 128],
    ["may only read it", ({ containers }) => (containers[0].volumeMounts[0].readOnly = true), 128],
    ["is elsewhere in the network", (spec) => (spec.hostNetwork = false), 1],
    ["takes a program for the loader", ({ containers }) => containers[0].command.shift(), 128],
  ])("saves nothing where the pod %s", async (_, change, exitCode) => {
    const pod = await ofProgram();
    change(pod.spec);

    expect(await runSnapshotPod(pod, save)).toMatchObject({ exitCode });
    expect(save).not.toHaveBeenCalled();
  });

  it("ends as chroot does on a machine that has no such script, and with what the script says", async () => {
    const pod = await ofProgram();

    expect(await runSnapshotPod(pod, undefined)).toMatchObject({ exitCode: 127 });
    save.mockRejectedValueOnce(new Error("the container refuses this machine"));
    const { output } = (await runSnapshotPod(pod, save))!;
    expect(output.trim().split("\n").at(-1)).toBe("the container refuses this machine");
  });

  it("is none of another program's pods", async () => {
    const spec = { containers: [{ command: ["etcdctl", "member", "list"] }] };

    expect(await runSnapshotPod({ spec }, save)).toBeUndefined();
  });
});
