import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import timers from "node:timers/promises";

import { KubernetesApi } from "../../../components/cluster/kubernetes-api";
import { drainForResize, drainForUpgrade, leave } from "../../../components/cluster/leave";
import { runPod } from "../../../components/cluster/one-shot-pod";
import { ApiAnswer, ApiRequest, serveKubernetesObjects } from "../../support/kubernetes-api";
import { testFolder } from "../../support/test-folder";

// What is waited for takes a hundredth of its time.
const { setTimeout: pause } = timers;
jest.spyOn(timers, "setTimeout").mockImplementation((ms = 0) => pause(ms / 100) as never);

const vmId = "46bb8116-3ea4-4e93-b476-be1ffcde1f3d";
const swapped = "1681bb46-a43e-934e-b476-be1ffcde1f3d";
const limits = {
  drainMinutes: 1,
  dataLossAccepted: false,
  skipIfUnreachable: false,
  savesEtcd: false,
};

let kubeconfig: string;
let systemUUID: string | undefined;
let status = 200;
/** What answers 503 alone. */
let broken: string | undefined;
let cluster: FakeCluster | undefined;
const writes: string[] = [];

beforeAll(async () => {
  kubeconfig = await serveKubernetesObjects((request): ApiAnswer => {
    if (cluster !== undefined) return cluster.answer(request);
    const { method, pathname } = request;
    if (method !== "GET") writes.push(`${method} ${pathname}`);
    const isNode = pathname === "/api/v1/nodes/one";
    if (broken !== undefined && pathname.startsWith(broken)) return [503, {}];
    // A cluster of before has nothing that says which machines are down.
    if (pathname.endsWith("/configmaps/zoned-maintenance")) return [404, {}];
    const node = {
      metadata: { name: "one" },
      spec: {},
      status: {
        nodeInfo: { systemUUID, kubeletVersion: "v1.36.3" },
        conditions: [{ type: "Ready", status: "True" }],
      },
    };
    return [isNode && systemUUID === undefined ? 404 : status, isNode ? node : { items: [] }];
  });
});
beforeEach(() => {
  writes.length = 0;
  cluster = undefined;
  status = 200;
  systemUUID = vmId;
});

const worker = () => ({ machine: "one", role: "worker" as const, vmId, kubeconfig });

it.each([vmId.toUpperCase(), swapped])(
  "drains and deletes the Node of its own VM, %s",
  async (uuid) => {
    systemUUID = uuid;

    await leave(worker(), limits);

    expect(writes).toEqual(["PATCH /api/v1/nodes/one", "DELETE /api/v1/nodes/one"]);
  },
);

it("leaves the Node of a machine that has taken its place alone", async () => {
  systemUUID = "0ba39847-2d92-42ae-851d-95ffdc1b6832";

  await leave(worker(), limits);

  expect(writes).toEqual([]);
});

it("takes a Node that is gone for left", async () => {
  systemUUID = undefined;

  await leave(worker(), limits);

  expect(writes).toEqual(["DELETE /api/v1/nodes/one"]);
});

it("asks the API all the same where nobody has to", async () => {
  await leave(worker(), { ...limits, skipIfUnreachable: true });

  expect(writes).toContain("DELETE /api/v1/nodes/one");
});

it("touches nothing where the API is not ready, unless nobody is to ask it", async () => {
  status = 503;

  await expect(leave(worker(), limits)).rejects.toThrow(
    /not drained, and nothing was changed: [^]*pulumi config set skipHealthCheckUntil/,
  );
  await leave(worker(), { ...limits, skipIfUnreachable: true });

  expect(writes).toEqual([]);
});

const [same, next] = [{ kubernetesVersion: "1.36.3" }, { kubernetesVersion: "1.36.4" }];

it.each([
  ["of another version", next, ["PATCH /api/v1/nodes/one"]],
  ["of which only flags change", same, []],
])("drains a member %s before its step", async (_, upgrade, expected) => {
  await drainForUpgrade(worker(), upgrade, limits);

  expect(writes).toEqual(expected);
});

it("drains nothing for the step of a machine that has no Node yet", async () => {
  systemUUID = undefined;

  await drainForUpgrade(worker(), { ...next, isHalfDone: true }, limits);

  expect(writes).toEqual([]);
});

describe.each([
  ["is not ready", "/readyz"],
  ["is silent after its first answer", "/api/v1/nodes"],
])("where the API %s", (_, path) => {
  // Two minutes of it, of which only pauses take time.
  beforeEach(() => {
    let now = Date.now();
    jest.spyOn(Date, "now").mockImplementation(() => now);
    jest.spyOn(timers, "setTimeout").mockImplementation(async (ms = 0) => (now += ms) as never);
    broken = path;
  });
  afterEach(() => {
    broken = undefined;
    jest.spyOn(Date, "now").mockRestore();
    jest.spyOn(timers, "setTimeout").mockImplementation((ms = 0) => pause(ms / 100) as never);
  });

  it.each([
    ["a worker that is half upgraded waits", "worker", true, false],
    ["a control plane that is not waits", "control-plane", false, false],
    ["a control plane that is begins, and may be why", "control-plane", true, true],
  ] as const)("the step of %s", async (_, role, isHalfDone, begins) => {
    const outcome = drainForUpgrade({ ...worker(), role }, { ...next, isHalfDone }, limits);

    if (begins) await expect(outcome).resolves.toBeUndefined();
    else await expect(outcome).rejects.toThrow();
  });
});

/** What a strategic merge patch adds to etcd's pod comes first. */
const aside = { name: "aside", image: "aside:1.0.0" };

/** A cluster of three control planes, each with its member of etcd, that is well. */
class FakeCluster {
  members = ["cp-1", "cp-2", "cp-3"].map((name, index) => this.member(name, index));
  readonly unready = new Set<string>();
  /** Members that do not answer. */
  readonly dead = new Set<string>();
  nodes = this.members.map(({ name }) => name);
  /** What was done, in order. */
  readonly done: string[] = [];
  readonly pods = new Map<string, any>();
  /** Machines that are down. */
  turns: Record<string, string> = {};
  /** Those of the settings, where the cluster knows them. */
  machines?: string;
  private log = "";
  /** Whether etcdctl fails. */
  fails = false;
  failsIn: "containerStatuses" | "initContainerStatuses" = "containerStatuses";
  architecture?: string;
  /** Of each pod, where none ends. */
  phase?: string;
  /** How the script that saves etcd ends. */
  saves: { readonly exitCode: number; readonly message?: string } = { exitCode: 0 };

  member(name: string, index: number) {
    return {
      id: `${index + 1}0000000000000ff`,
      name,
      status: "started",
      clientUrls: `https://172.16.${index + 1}.4:2379,https://127.0.0.1:2379`,
      isLearner: false,
    };
  }

  answer(request: ApiRequest): ApiAnswer {
    const { method, url, pathname, body } = request;
    const { searchParams } = new URL(url, "https://localhost");
    const [, node] = /^\/api\/v1\/nodes\/(.+)$/.exec(pathname) ?? [];
    const [, pod] = /^\/api\/v1\/namespaces\/kube-system\/pods\/([^/]+)/.exec(pathname) ?? [];
    if (pathname === "/readyz") return [200, "ok"];
    if (pathname.endsWith("/configmaps/zoned-maintenance")) {
      const turns = Object.entries<any>({ ...this.turns, ...body?.data });
      this.turns = Object.fromEntries(turns.filter(([, value]) => value !== null));
      const annotations = this.machines ? { "zoned/machines": this.machines } : {};
      return [200, { metadata: { resourceVersion: "1", annotations }, data: this.turns }];
    }
    if (pathname === "/api/v1/nodes") {
      const isAll = searchParams.get("labelSelector") !== "node-role.kubernetes.io/control-plane";
      const nodes = isAll ? [...this.nodes, "worker-1"] : this.nodes;
      return [200, { items: nodes.map(this.node) }];
    }
    if (node !== undefined) return this.changeNode(method, node);
    if (pod !== undefined) return this.changePod(pod, request, searchParams.get("container"));
    if (pathname.startsWith("/apis/coordination.k8s.io/")) {
      const names = pathname.includes("kube-node-lease") ? this.nodes : ["kube-controller-manager"];
      const items = names.map((name) => ({ metadata: { name }, spec: { renewTime: new Date() } }));
      return [200, { items }];
    }
    const [, what] =
      /^app.kubernetes.io\/name=(.*)$/.exec(searchParams.get("labelSelector") ?? "") ?? [];
    if (what !== undefined) {
      const pods = this.left.filter(({ metadata }) => metadata.name.startsWith(what));
      return [200, { items: pods }];
    }
    if (searchParams.get("labelSelector") === "tier=control-plane") {
      const parts = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];
      return [
        200,
        {
          items: this.nodes.flatMap((name) => parts.map((part) => this.object(`${part}-${name}`))),
        },
      ];
    }
    return [200, { items: [] }];
  }

  private readonly object = (name: string) => ({
    metadata: { name },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  });

  private readonly node = (name: string) => ({
    metadata: { name },
    spec: {},
    status: {
      nodeInfo: { systemUUID: vmId, architecture: this.architecture, kubeletVersion: "v1.36.3" },
      conditions: [{ type: "Ready", status: this.unready.has(name) ? "False" : "True" }],
    },
  });

  private changeNode(method: string, name: string): ApiAnswer {
    if (!this.nodes.includes(name)) return [404, {}];
    if (method !== "GET") this.done.push(`${method} ${name}`);
    if (method === "DELETE") this.nodes = this.nodes.filter((one) => one !== name);
    return [200, this.node(name)];
  }

  private changePod(
    name: string,
    { method, pathname, body, contentType }: ApiRequest,
    container: string | null,
  ): ApiAnswer {
    if (name.startsWith("etcd-"))
      return [200, { spec: { containers: [aside, { name: "etcd", image: "etcd:its-own" }] } }];
    if (method === "PATCH") {
      if (contentType !== "application/apply-patch+yaml") return [415, {}];
      this.pods.set(name, body);
      const { initContainers, containers, nodeName } = body.spec;
      for (const { command } of [...initContainers, ...containers]) this.run(nodeName, command);
    }
    if (method === "DELETE") this.pods.delete(name);
    if (pathname.endsWith("/log")) {
      const { containers } = this.pods.get(name).spec;
      return containers.some(({ name }: any) => name === container) ? [200, this.log] : [400, {}];
    }
    if (this.phase !== undefined) return [200, { status: { phase: this.phase } }];
    const isSnapshot = name.startsWith("zoned-etcd-snapshot");
    const dead = this.members.filter((one) => this.dead.has(one.name));
    const first: string[] = this.pods.get(name)?.spec.initContainers[0]?.command ?? [];
    const asksHealth = first.includes("health");
    // It asks one endpoint after another who leads, and ends at the first one that does not answer.
    const asked = first.includes("move-leader") ? first[1]!.split(",").slice(0, -1) : [];
    const asksDead = dead.some(({ clientUrls }) =>
      asked.some((url) => url.endsWith(clientUrls.split(",")[0]!)),
    );
    const unhealthy = dead.map(
      ({ clientUrls }) => `${clientUrls.split(",")[0]} is unhealthy: context deadline exceeded`,
    );
    const terminated = isSnapshot
      ? this.saves
      : { exitCode: 1, message: unhealthy.join("\n") || "etcdserver: unhealthy cluster" };
    const failed = this.fails || (asksHealth && unhealthy.length > 0) || asksDead;
    return [
      200,
      (isSnapshot ? this.saves.exitCode !== 0 : failed)
        ? { status: { phase: "Failed", [this.failsIn]: [{ state: { terminated } }] } }
        : { status: { phase: "Succeeded" } },
    ];
  }

  private run(node: string, command: string[]): void {
    const [program, ...words] = command;
    if (program !== "etcdctl") {
      this.done.push(`${command.slice(command.indexOf("/host") + 1).join(" ")} on ${node}`);
      return;
    }
    const [endpoints = ""] = words;
    const rest = words.filter((word) => !word.startsWith("--")).join(" ");
    this.done.push(`${program} ${rest} on ${node} by ${endpoints.replace("--endpoints=", "")}`);
    const [, removed] = /^member remove (.*)$/.exec(rest) ?? [];
    this.members = this.members.filter(({ id }) => id !== removed);
    this.log = this.members
      .map((one) =>
        [one.id, one.status, one.name, "https://peer:2380", one.clientUrls, one.isLearner].join(
          ", ",
        ),
      )
      .join("\n");
  }

  /** Specifications of the pods that are left. */
  get left(): any[] {
    return [...this.pods.values()];
  }
}

describe("a control plane", () => {
  const own = "https://127.0.0.1:2379";
  const list = (by: string) => `etcdctl member list on ${by} by ${own}`;
  const health = (by: string) => `etcdctl endpoint health on ${by} by ${own}`;
  const controlPlane = (machine = "cp-3") =>
    ({ machine, role: "control-plane", vmId, kubeconfig }) as const;

  beforeEach(() => {
    cluster = new FakeCluster();
  });

  it("hands etcd's leadership to another one, leaves etcd, and then the cluster", async () => {
    await leave(controlPlane(), limits);

    expect(cluster!.done).toEqual([
      health("cp-1"),
      list("cp-1"),
      "PATCH cp-3",
      health("cp-1"),
      list("cp-1"),
      // Those that stay are asked first: the one that goes may be dead.
      "etcdctl move-leader 10000000000000ff on cp-1 by https://172.16.1.4:2379,https://172.16.2.4:2379,https://172.16.3.4:2379",
      `etcdctl member remove 30000000000000ff on cp-1 by ${own}`,
      "DELETE cp-3",
    ]);
    expect(cluster!.left).toEqual([]);
    // Until its successor is back.
    expect(cluster!.turns).toEqual({ "cp-3": expect.stringMatching(/^update 20/) });
  });

  it.each([
    ["is made anew", "cp-1 cp-2 cp-3", ["cp-3"]],
    ["has left for good", "cp-1 cp-2", []],
  ])("is noted as down where it %s: %s", async (_, machines, down) => {
    cluster!.machines = machines;

    await leave(controlPlane(), limits);

    expect(Object.keys(cluster!.turns)).toEqual(down);
  });

  it("waits while another machine is down for something else, and says which", async () => {
    cluster!.turns = { "worker-1": "Redeploy 2999-01-01T00:00:00Z" };

    await expect(leave(controlPlane(), { ...limits, drainMinutes: 0 })).rejects.toThrow(
      /cp-3 was not touched[^]*worker-1 is down for Redeploy, at most until 2999/,
    );
    expect(cluster!.done).toEqual([]);

    // A machine that did not come back has not said so.
    cluster!.turns = { "worker-1": "Redeploy 2020-01-01T00:00:00Z" };
    await leave(controlPlane(), { ...limits, drainMinutes: 0 });
    expect(cluster!.done.at(-1)).toBe("DELETE cp-3");
  });

  it("leaves the cluster also where etcd does not list it any more", async () => {
    cluster!.members.pop();

    await leave(controlPlane(), limits);

    expect(cluster!.done.slice(2)).toEqual([
      "PATCH cp-3",
      health("cp-1"),
      list("cp-1"),
      "DELETE cp-3",
    ]);
  });

  it("has nothing asked of a member that another join adds meanwhile", async () => {
    const { answer } = FakeCluster.prototype;
    cluster!.answer = function (this: FakeCluster, request) {
      if (request.method === "PATCH" && request.pathname === "/api/v1/nodes/cp-3") {
        const { members } = this;
        members.push({ ...members[0]!, id: "4", name: "", status: "unstarted", clientUrls: "" });
      }
      return answer.call(this, request);
    };

    await leave(controlPlane(), limits);

    expect(cluster!.done.find((one) => one.includes("move-leader"))).toMatch(
      / by https:\/\/172\.16\.1\.4:2379,https:\/\/172\.16\.2\.4:2379,https:\/\/172\.16\.3\.4:2379$/,
    );
  });

  it("stays while another one is not well", async () => {
    cluster!.unready.add("cp-1");

    const refusal = await leave(controlPlane(), limits).catch(String);

    expect(refusal).toMatch(/cp-3 cannot leave etcd[^]*cp-1: its Node is not Ready/);
    expect(new Set(cluster!.done)).toEqual(new Set([health("cp-2"), list("cp-2")]));
    expect(cluster!.turns).toEqual({});
  });

  it("stays where the API is not ready any more, which is asked six times and no more", async () => {
    let asked = 0;
    const { answer } = FakeCluster.prototype;
    cluster!.answer = function (this: FakeCluster, request) {
      if (request.pathname === "/readyz" && asked++ > 0) return [500, "[-]etcd failed"];
      return answer.call(this, request);
    };

    await expect(leave(controlPlane(), limits)).rejects.toThrow(/answered 500 to GET \/readyz/);
    expect(asked).toBe(1 + 6);
  });

  it("waits for one that is not well just after another has left", async () => {
    cluster!.unready.add("cp-1");
    setTimeout(() => cluster!.unready.clear(), 150);

    await leave(controlPlane(), limits);

    expect(cluster!.left).toEqual([]);
    expect(cluster!.done.at(-1)).toBe("DELETE cp-3");
  });

  it.each<[string, (all: FakeCluster) => void, RegExp]>([
    [
      "is a learner",
      ({ members }) => (members[1]!.isLearner = true),
      /cp-2: its etcd member is a learner/,
    ],
    [
      "belongs to nobody",
      ({ members }) => (members[1]!.name = "cp-9"),
      /belongs to no control plane/,
    ],
  ])("stays while a member of etcd %s", async (_, change, says) => {
    change(cluster!);

    await expect(leave(controlPlane(), limits)).rejects.toThrow(says);
    expect(new Set(cluster!.done)).toEqual(new Set([health("cp-1"), list("cp-1")]));
  });

  describe("that is lost with another one", () => {
    beforeEach(() => {
      cluster!.members.push(cluster!.member("cp-4", 3), cluster!.member("cp-5", 4));
      for (const name of ["cp-4", "cp-5"]) cluster!.dead.add(name);
    });
    const removals = () => cluster!.done.filter((one) => one.includes("member remove"));

    it("leaves etcd, and so does the other one, which is dead and no Node any more", async () => {
      await leave(controlPlane("cp-4"), limits);

      expect(removals()).toEqual([
        `etcdctl member remove 50000000000000ff on cp-1 by ${own}`,
        `etcdctl member remove 40000000000000ff on cp-1 by ${own}`,
      ]);
      await leave(controlPlane("cp-5"), limits);
      expect(removals()).toHaveLength(2);
    });

    it("leaves etcd whichever of them etcd lists first", async () => {
      cluster!.members.reverse();

      await leave(controlPlane("cp-4"), limits);

      expect(removals()).toHaveLength(2);
    });

    it("stays while the other one is a Node that may come back, until that is deleted", async () => {
      cluster!.nodes.push("cp-5");
      cluster!.unready.add("cp-5");
      await expect(leave(controlPlane("cp-4"), limits)).rejects.toThrow(
        /cp-5: its Node is not Ready[^]*kubectl delete node/,
      );
      expect(removals()).toEqual([]);

      // As the cloud provider does when Azure has no such machine, perhaps in a moment.
      setTimeout(() => (cluster!.nodes = cluster!.nodes.filter((name) => name !== "cp-5")), 150);
      await leave(controlPlane("cp-4"), limits);
      expect(removals()).toHaveLength(2);
    });

    it("stays beside a dead member that is no control plane of this cluster", async () => {
      cluster!.members[4]!.name = "somebody";
      cluster!.dead.add("somebody");

      await expect(leave(controlPlane("cp-4"), limits)).rejects.toThrow(/named somebody/);
      expect(removals()).toEqual([]);
    });
  });

  it("deletes pods that a program has left that was killed, and no other's", async () => {
    const hours = (ago: number) => new Date(Date.now() - ago * 3_600_000).toISOString();
    for (const [name, ago] of Object.entries({ old: 2, new: 0.5 })) {
      const metadata = { name: `zoned-etcdctl-${name}`, creationTimestamp: hours(ago) };
      cluster!.pods.set(metadata.name, { metadata });
    }

    await leave(controlPlane(), limits);

    expect(cluster!.left.map(({ metadata }) => metadata.name)).toEqual(["zoned-etcdctl-new"]);
  });

  it("is not restarted either while another one is not well, or etcd has a member that belongs to nobody", async () => {
    cluster!.unready.add("cp-1");
    await expect(drainForResize(controlPlane(), limits)).rejects.toThrow(
      /cp-3 cannot be restarted[^]*cp-1: its Node is not Ready/,
    );
    cluster!.unready.clear();
    cluster!.members[1]!.name = "cp-9";
    await expect(drainForResize(controlPlane(), limits)).rejects.toThrow(/named cp-9, belongs to/);
    expect(cluster!.done).not.toContain("PATCH cp-3");

    cluster!.members[1]!.name = "cp-2";
    await drainForResize(controlPlane(), limits);
    expect(cluster!.done.at(-1)).toBe("PATCH cp-3");
  });

  it("is drained for its upgrade in its turn, which it gives back where a budget does not let it", async () => {
    cluster!.turns = { "worker-9": "Reboot 2999-01-01T00:00:00Z" };
    await expect(
      drainForUpgrade(controlPlane(), next, { ...limits, drainMinutes: 0 }),
    ).rejects.toThrow(/cp-3 was not touched[^]*worker-9 is down for Reboot/);
    expect(cluster!.done).toEqual([]);

    cluster!.turns = {};
    await drainForUpgrade(controlPlane(), next, limits);
    expect(cluster!.done).toEqual(["PATCH cp-3"]);
    expect(cluster!.turns["cp-3"]).toMatch(/^update 20/);
  });

  it("is restarted without a question where it is the only one", async () => {
    cluster!.nodes = ["cp-1"];

    await drainForResize(controlPlane("cp-1"), limits);

    expect(cluster!.done).toEqual(["PATCH cp-1"]);
  });

  it("stays where etcd does not let it go, and the message has etcd's words", async () => {
    cluster!.fails = true;

    await expect(leave(controlPlane(), limits)).rejects.toThrow(/unhealthy cluster/);
    expect(cluster!.nodes).toContain("cp-3");
    expect(cluster!.left).toEqual([]);
  });

  it("stays where it is the last one, with which all would go that etcd holds, unless that is given up", async () => {
    cluster!.nodes = ["cp-1"];

    await expect(leave(controlPlane("cp-1"), limits)).rejects.toThrow(
      /cp-1 is the last control plane[^]*without --target/,
    );
    await leave(controlPlane("cp-1"), { ...limits, dataLossAccepted: true });

    expect(cluster!.done).toEqual([]);
  });

  it("has etcd's words also from a pod of which the first of several commands fails", async () => {
    cluster!.fails = true;
    cluster!.failsIn = "initContainerStatuses";

    await expect(leave(controlPlane(), limits)).rejects.toThrow(
      /failed: etcdserver: unhealthy cluster/,
    );
  });

  it("has a pod that does not begin deleted when its time is over, and says so", async () => {
    cluster!.phase = "Pending";
    const api = new KubernetesApi(kubeconfig);
    const folder = { hostPath: "/", mountPath: "/host", readOnly: true };
    const pod = { name: "zoned-etcdctl", commands: [["true"]], folder, seconds: 0.01 };

    await expect(runPod(api, "cp-1", pod)).rejects.toThrow(/is Pending after 0.01 s/);
    await api.close();
    expect(cluster!.left).toEqual([]);
  });

  it("runs etcdctl where etcd runs, with its image and its certificates, whatever the Node repels", async () => {
    const spec = specOf(cluster!, "zoned-etcdctl");

    await leave(controlPlane(), limits);

    expect(spec()).toMatchObject({
      nodeName: "cp-1",
      hostNetwork: true,
      restartPolicy: "Never",
      // Where a Node is short of something, what is less important goes.
      priorityClassName: "system-node-critical",
      tolerations: [{ operator: "Exists" }],
      volumes: [{ hostPath: { path: "/etc/kubernetes/pki/etcd" } }],
    });
    for (const container of [...spec().initContainers, ...spec().containers]) {
      expect(container).toMatchObject({
        image: "etcd:its-own",
        // It is there, whether or not its registry answers.
        imagePullPolicy: "IfNotPresent",
        // Else the end of the log, which says why, is in no message.
        terminationMessagePolicy: "FallbackToLogsOnError",
        volumeMounts: [{ readOnly: true }],
      });
      expect(container.securityContext).toBeUndefined();
    }
  });
});

/** The specification of the last pod that is called so. */
function specOf(of: FakeCluster, name: string): () => any {
  let spec: any;
  const { answer } = FakeCluster.prototype;
  of.answer = function (this: FakeCluster, request) {
    const { method, url, body } = request;
    if (method === "PATCH" && url.includes(`/pods/${name}`)) spec = body.spec;
    return answer.call(this, request);
  };
  return () => spec;
}

describe("a control plane of a cluster whose etcd is saved", () => {
  const saving = { ...limits, savesEtcd: true };
  const member = () => ({ machine: "cp-3", role: "control-plane", vmId, kubeconfig }) as const;
  const refused = {
    exitCode: 1,
    message: "saving etcd\nthe container refuses this machine (403)\n",
  };
  const save = "/opt/zoned/etcd-snapshot.sh save any on cp-1";
  let said: jest.SpyInstance;

  beforeEach(() => {
    cluster = new FakeCluster();
    said = jest.spyOn(console, "error").mockImplementation();
  });
  afterEach(() => said.mockRestore());

  it("leaves after one that stays has saved etcd, before it is drained", async () => {
    await leave(member(), saving);

    const { done, left } = cluster!;
    expect(done.slice(2, 4)).toEqual([save, "PATCH cp-3"]);
    expect(done.at(-1)).toBe("DELETE cp-3");
    expect(left).toEqual([]);
  });

  it("has it saved by the script of the machine that stays, as root of that machine", async () => {
    const spec = specOf(cluster!, "zoned-etcd-snapshot");
    await leave(member(), saving);

    const { nodeName, volumes, containers, activeDeadlineSeconds } = spec();
    expect([nodeName, volumes]).toEqual([
      "cp-1",
      [expect.objectContaining({ hostPath: { path: "/", type: "Directory" } })],
    ]);
    expect(containers).toEqual([
      expect.objectContaining({
        securityContext: { privileged: true },
        volumeMounts: [expect.objectContaining({ mountPath: "/host", readOnly: false })],
      }),
    ]);
    expect(activeDeadlineSeconds).toBe(1200);
  });

  it("has it saved by the loader and the libraries of a machine of Arm", async () => {
    cluster!.architecture = "arm64";
    const spec = specOf(cluster!, "zoned-etcd-snapshot");
    await leave(member(), saving);

    const folder = "/host/usr/lib/aarch64-linux-gnu";
    expect(spec().containers[0].command.slice(0, 3)).toEqual([
      ...[`${folder}/ld-linux-aarch64.so.1`, "--library-path", folder],
    ]);
  });

  it("runs on the machine from an image without shell, loader and library, and knows by the exit code that it has no such script", async () => {
    const spec = specOf(cluster!, "zoned-etcd-snapshot");
    await leave(member(), saving);
    const [{ command }] = spec().containers;
    const image = testFolder();
    mkdirSync(join(image, "host"));
    const inImage = (...words: string[]) =>
      spawnSync(
        "unshare",
        [
          ...["--user", "--map-root-user", "--mount", "bash", "-c"],
          'mount --rbind / "$0/host" && PATH=$PATH:/usr/sbin:/sbin exec chroot "$0" "$@"',
          image,
          ...words,
        ],
        { encoding: "utf8" },
      );
    const onMachine = command.slice(0, command.indexOf("/opt/zoned/etcd-snapshot.sh"));

    const there = inImage(...onMachine, "/bin/bash", "-c", "echo it runs");
    const missing = inImage(...onMachine, "/opt/zoned/etcd-snapshot.sh");

    expect(there).toMatchObject({ status: 0, stdout: "it runs\n", stderr: "" });
    cluster = new FakeCluster();
    cluster.saves = { exitCode: missing.status!, message: missing.stderr };
    await leave(member(), saving);
    expect(cluster.done.at(-1)).toBe("DELETE cp-3");
  });

  it("stays where that fails, as it was, and the message has the script's last line", async () => {
    cluster!.saves = refused;

    await expect(leave(member(), saving)).rejects.toThrow(
      /^etcd was not saved before cp-3 leaves: the container refuses this machine \(403\)\nNothing was deleted/,
    );
    expect(cluster!.done.at(-1)).toBe(save);
  });

  it("leaves all the same where it is not well, and the operator is told that etcd was not saved", async () => {
    cluster!.saves = refused;
    cluster!.unready.add("cp-3");

    await leave(member(), saving);

    expect(cluster!.done.at(-1)).toBe("DELETE cp-3");
    expect(said.mock.calls.join()).toMatch(
      /^etcd was not saved before cp-3 leaves: .*\(403\); it leaves all the same/,
    );
  });

  it("leaves where the one that stays has not been told to save yet", async () => {
    cluster!.saves = {
      exitCode: 127,
      message: "chroot: failed to run command '/opt/zoned/etcd-snapshot.sh': No such file",
    };

    await leave(member(), saving);

    expect(cluster!.done.at(-1)).toBe("DELETE cp-3");
  });

  it.each([
    "exec: /host/usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1: no such file or directory",
    "/host/usr/sbin/chroot: error while loading shared libraries: libc.so.6",
    "/opt/zoned/etcd-snapshot.sh: line 9: curl: command not found",
    "timeout: failed to run command 'etcdctl': No such file or directory",
  ])("stays where something else than the script is missing: %s", async (message) => {
    cluster!.saves = { exitCode: 127, message };

    await expect(leave(member(), saving)).rejects.toThrow(message);
    expect(cluster!.done.at(-1)).toBe(save);
  });
});
