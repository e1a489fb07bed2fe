import { text } from "node:stream/consumers";

import { MachineState } from "../../../components/azure/state";
import { LeftArgs, markLeft } from "../../../components/plan/left-machines";
import { MachineChange } from "../../../components/plan/machine-changes";
import { startedMachines, stoppedMachines } from "../../../components/plan/stopped-machines";
import { machinesOf } from "../../../components/settings/topology";
import { serveKubernetesApi } from "../../support/kubernetes-api";
import { validSettings } from "../../support/sample";

describe("stopped machines", () => {
  const name = (word: string) => `zoned-test-${word}`;
  const running: MachineState = {
    size: "Standard_D2s_v5",
    power: "running",
    initialization: "1-then",
    bootstrap: { state: "Succeeded", requestedAt: "then" },
  };
  const off: MachineState = { ...running, power: "deallocated" };
  const failed = { bootstrap: { state: "Failed" } };

  interface Scene {
    /** Machines that do not simply run, by the ends of their names. */
    readonly machines?: Readonly<Record<string, MachineState>>;
    readonly changes?: string;
    readonly controlPlaneCount?: number;
    readonly exists?: boolean;
    readonly isRestoring?: boolean;
    /** The end of a machine's name that is made anew. */
    readonly replaced?: string;
  }

  function look({ machines = {}, changes = "", exists = true, ...scene }: Scene) {
    const controlPlaneCount = scene.controlPlaneCount ?? 3;
    const plans = machinesOf({ ...validSettings, controlPlaneCount });
    const azure = {
      machines: new Map(
        plans.map((plan) => [plan.name, machines[plan.name.slice(name("").length)] ?? running]),
      ),
    };
    const kept = plans.filter((plan) => plan.name !== name(scene.replaced ?? ""));
    const started = startedMachines(kept, azure);
    const { off, problems } = stoppedMachines({
      settings: validSettings,
      initialization: { id: "1-then", exists, isRestoring: scene.isRestoring },
      azure,
      retained: kept,
      changes: changes.split(", ").flatMap((change): MachineChange[] => {
        const [does, machine] = change.split(" ");
        return machine === undefined
          ? []
          : [{ action: does as MachineChange["action"], machine: name(machine), reasons: [] }];
      }),
      started: new Set(started),
    });
    return { off, problems, started };
  }

  const start = (...words: string[]) =>
    words.length === 1
      ? `az vm start --resource-group zoned-test --name ${name(words[0]!)}`
      : `for name in ${words.map(name).join(" ")}; do az vm start --resource-group zoned-test --name $name; done`;

  it.each<[what: string, scene: Scene, says: string]>([
    [
      "whose step would run",
      { machines: { "workers-1": off }, changes: "upgrade workers-1" },
      `zoned-test-workers-1 is deallocated (this update would upgrade it): ${start("workers-1")}`,
    ],
    [
      "whose step has failed",
      { machines: { "workers-1": { ...off, ...failed, power: "stopped" } } },
      `zoned-test-workers-1 is stopped (its bootstrap step has to run again): ${start("workers-1")}`,
    ],
    [
      "whose step has failed, before there is a cluster",
      { machines: { "cp-1": { ...off, ...failed } }, exists: false },
      `zoned-test-cp-1 is deallocated (its bootstrap step has to run again): ${start("cp-1")}`,
    ],
    [
      "without which there is no API, though nothing changes",
      { machines: { "cp-1": off, "workers-2": off }, controlPlaneCount: 1 },
      `zoned-test-cp-1 is deallocated (no API answers without it), zoned-test-workers-2 is deallocated: ${start("cp-1", "workers-2")}`,
    ],
    [
      "of which etcd has no majority",
      { machines: { "cp-1": off, "cp-3": { ...off, power: "stopping" } } },
      `zoned-test-cp-1 is deallocated (no API answers without it), zoned-test-cp-3 is stopping (no API answers without it): ${start("cp-1", "cp-3")}`,
    ],
    [
      "of which half of an even number is no majority for etcd",
      { machines: { "cp-1": off, "cp-4": off }, controlPlaneCount: 4 },
      `zoned-test-cp-1 is deallocated (no API answers without it), zoned-test-cp-4 is deallocated (no API answers without it): ${start("cp-1", "cp-4")}`,
    ],
    [
      "that would be replaced, where no API answers",
      { machines: { "cp-1": off }, controlPlaneCount: 1, replaced: "cp-1" },
      `zoned-test-cp-1 is deallocated (no API answers without it): ${start("cp-1")}`,
    ],
  ])("names a machine that is off %s, and what starts it", (_, scene, says) => {
    expect(look(scene).problems).toEqual([`${says}, then run pulumi up again`]);
  });

  it.each<[what: string, scene: Scene]>([
    ["nothing changes", { machines: { "cp-2": off, "workers-1": off } }],
    ["another machine changes", { machines: { "workers-1": off }, changes: "upgrade workers-2" }],
    ["a machine is made anew", { machines: { "workers-1": off }, replaced: "workers-1" }],
    [
      "the cluster is restored from a snapshot",
      { machines: { "cp-1": off }, controlPlaneCount: 1, isRestoring: true, replaced: "cp-1" },
    ],
    ["Azure says nothing of its power", { machines: { "cp-1": { ...off, power: undefined } } }],
  ])("has nothing against machines that are off where %s", (_, scene) => {
    expect(look(scene).problems).toEqual([]);
  });

  it.each<[what: string, machine: MachineState, isStarted: boolean]>([
    ["starts one that gets another size", { ...off, size: "Standard_D2as_v5" }, true],
    ["leaves one whose size differs in case", { ...off, size: "STANDARD_D2S_V5" }, false],
    ["starts one whose restart an update did not end", { ...off, drained: "now" }, true],
    [
      "leaves one whose restart has ended",
      { ...off, drained: "then", bootstrap: { state: "Succeeded", drained: "then" } },
      false,
    ],
    [
      "starts one that was drained for a size it never got",
      { ...off, stoppedForResize: true },
      true,
    ],
    ["leaves one that runs", { ...running, drained: "now" }, false],
  ])("%s", (_, machine, isStarted) => {
    const { off, problems, started } = look({
      machines: { "cp-1": machine },
      controlPlaneCount: 1,
      changes: isStarted ? "resize cp-1" : "",
    });

    expect(started).toEqual(isStarted ? [name("cp-1")] : []);
    if (isStarted) expect({ off, problems }).toEqual({ off: [], problems: [] });
  });
});

describe("left machines", () => {
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

  const member = (name: string, address = "172.16.1.4") =>
    `1234, ${name === "" ? "unstarted" : "started"}, ${name}, https://${address}:2380, https://${address}:2379, false`;

  const names = [first, second, third];
  const all = machines.map(({ name }) => name);
  let cluster: Cluster;
  /** Control planes whose etcd was asked. */
  let asked: string[];
  let kubeconfig: string;

  beforeAll(async () => {
    kubeconfig = await serveKubernetesApi(async (request, response) => {
      const { nodes = all, members = names.map((name) => member(name)) } = cluster;
      const { method = "", url = "" } = request;
      const { pathname } = new URL(url, "https://localhost");
      const body = await text(request);
      const answer = (value: unknown) =>
        response.end(typeof value === "string" ? value : JSON.stringify(value));
      if (pathname === "/api/v1/nodes") {
        return answer({
          items: nodes.map((name) => ({
            metadata: {
              name,
              annotations: [cluster.drained, cluster.uncordoned].includes(name)
                ? { "zoned/drained": "unschedulable" }
                : {},
            },
            spec: name === cluster.drained ? { unschedulable: true } : {},
            status: {
              conditions: [
                { type: "Ready", status: name === cluster.unready ? "Unknown" : "True" },
              ],
            },
          })),
        });
      }
      if (method === "PATCH") asked.push(JSON.parse(body).spec.nodeName);
      if (pathname.endsWith("/log")) return answer(members.join("\n"));
      if (pathname.includes("/pods/etcd-")) {
        return answer({ spec: { containers: [{ name: "etcd", image: "etcd" }] } });
      }
      return answer({ items: [], status: { phase: "Succeeded" } });
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
