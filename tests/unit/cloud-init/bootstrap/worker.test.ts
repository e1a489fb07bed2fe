import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import {
  beforeJoining,
  bootstrap,
  calm,
  controlPlane,
  deeds,
  leaseOf,
  machineIn,
  programs,
  runStep,
  ship,
  worker,
  World,
} from "../../../support/bootstrapped-machine";
import { FakeMachine } from "../../../support/fake-machine";

const ready = { type: "Ready", status: "True" };

describe("a worker", () => {
  const workerIn = (world: Partial<World> = {}) => machineIn(world, worker);
  const reserved = "/etc/zoned/patches/kubeletconfiguration!reserved.json";

  const size = "Standard_D4s_v5";
  it.each([
    { named: "Standard_D2s_v5", patches: 1 },
    { named: size.toLowerCase(), patches: 0 },
    { named: undefined, patches: 0 },
  ])("whose Node's size is named $named has it named anew $patches times", async (row) => {
    const machine = workerIn();
    const labels = { "node.kubernetes.io/instance-type": row.named };
    const node = JSON.stringify({ metadata: { labels }, status: { conditions: [ready] } });
    machine.program(
      "curl",
      `case $* in *vmSize*) printf ${size}; exit ;; *PATCH*) ;; */api/v1/nodes/*) echo '${node}'; exit ;; esac\n${programs.curl}`,
    );
    machine.write("/etc/cni/net.d/10-it.conflist", "");

    expect(await runStep(machine, "await_node")).toMatchObject({ code: 0, stderr: "" });

    const patches = machine.callsOf("curl").filter((call) => call.includes("PATCH"));
    expect(patches).toHaveLength(row.patches);
    expect(patches.filter((call) => call.includes(size))).toEqual(patches);
  });

  describe("whose predecessor has left its Node, and which is not Ready in time", () => {
    let machine: FakeMachine;
    beforeAll(async () => {
      machine = workerIn({ node: true, ready: "False KubeletNotReady" });
      beforeJoining(machine, `cp "$root/${reserved}" "$root/reserved"`);
      expect((await bootstrap(machine, { HANGS: "await_node" })).code).toBe(124);
    });

    it("removes that Node first, with its own token, and joins", () => {
      expect(deeds(machine)).toEqual(["delete node", "join"]);
      expect(machine.callsOf("kubectl").find((call) => call.includes("delete"))).toBe(
        "--kubeconfig /etc/zoned/discovery.conf --request-timeout 30s delete node zoned-test-workers-1 --ignore-not-found --wait=false",
      );
    });

    it("asks neither for its identity nor for etcd", () => {
      expect(machine.callsOf("curl").join()).not.toMatch(/169\.254|:2379/);
    });

    it("has reserved what its kubelet needs before it joins", () => {
      expect(JSON.parse(machine.read("/reserved")).kubeReserved.cpu).toBe("100m");
    });

    it("leaves the API's name to the balancer", () => {
      expect(machine.read("/etc/hosts")).not.toContain("# zoned");
    });

    it("is not configured anew", async () => {
      machine.write("/ready", calm.ready);
      machine.forgetCalls();
      ship(machine, worker);

      expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });

      expect(machine.callsOf("kubeadm")).toEqual([]);
    });
  });

  // learn.microsoft.com/azure/aks/node-resource-reservations
  it.each([
    [1, 3900, 30, "60m", "650Mi"],
    [2, 7900, 30, "100m", "650Mi"],
    [2, 3900, 70, "100m", "1024Mi"],
    [2, 7935, 110, "100m", "2048Mi"],
    [2, 7939, 110, "100m", "2048Mi"],
    [4, 15900, 110, "140m", "2250Mi"],
    [8, 32000, 110, "180m", "2250Mi"],
    [16, 64000, 253, "260m", "5110Mi"],
    [32, 128000, 110, "420m", "2250Mi"],
    [64, 256000, 110, "740m", "2250Mi"],
  ])("of %i cores and %i MiB, for %i pods, reserves %s and %s", async (...row) => {
    const [cores, mebibytes, maxPods, cpu, memory] = row;
    const machine = machineIn({}, { ...worker, maxPods });
    machine.program("nproc", `echo ${cores}`);
    machine.program("free", `printf 'total used\\nMem: ${mebibytes} 400\\nSwap: 0 0\\n'`);

    expect((await runStep(machine, "reserve_resources")).code).toBe(0);

    expect(JSON.parse(machine.read(reserved))).toEqual({ kubeReserved: { cpu, memory } });
  });

  it("resets itself after a join that failed, removes the Node that it has left, and tries again", async () => {
    const machine = workerIn({ failing: { join: 2 } });
    beforeJoining(machine, 'touch "$root/node"');

    for (const code of [7, 7, 0]) expect((await runStep(machine, "join")).code).toBe(code);

    const undone = ["join", "reset", "delete node"];
    expect(deeds(machine)).toEqual([...undone, ...undone, "join"]);
  });

  it("says what the API said when it cannot be reached", async () => {
    const outcome = await bootstrap(workerIn({ api: "silent" }), { HANGS: "await_api" });

    expect(outcome.stderr.trim().split("\n").slice(-2)).toEqual([
      "no route to the API",
      'step "search for the API" failed with exit code 124',
    ]);
  });

  const refusedTimes = (times: number) => {
    const machine = workerIn();
    machine.program(
      "kubectl",
      `echo x >>"$root/asked"\n[[ $(wc -l <"$root/asked") -gt ${times} ]] || { echo "error: You must be logged in to the server (Unauthorized)" >&2; exit 1; }\n${programs.kubectl}`,
    );
    return machine;
  };

  it("gives an API server time to know its token", async () => {
    expect((await runStep(refusedTimes(10), "await_api")).code).toBe(0);
  });

  it("ends when its token has expired, and says how it gets another one", async () => {
    const { code, stdout } = await runStep(refusedTimes(1000), "await_api");

    expect(code).toBe(1);
    expect(stdout).toMatch(
      /does not know the join token of zoned-test-workers-1.*run `pulumi up` again, without --replace/,
    );
  });

  it("does not wait for Ready where nobody knows when that can be", async () => {
    const unready = { ready: "False KubeletNotReady" };
    const machine = machineIn(unready, { ...worker, awaitsReady: false });

    expect((await runStep(machine, "await_node")).code).toBe(0);
  });
});

describe("the first boot", () => {
  const done = "/var/lib/zoned/first-boot.done";
  const failed = "/var/lib/zoned/first-boot.failed";
  const unbooted = () => {
    const machine = machineIn({}, worker);
    machine.removeFile(done);
    machine.write(
      "/opt/zoned/first-boot.sh",
      `#!/bin/bash\n(($# == 0)) || exit 0\ntouch "$ZONED_ROOT/ran"\nrm -f "$ZONED_ROOT${failed}"\ntouch "$ZONED_ROOT${done}"\n`,
      0o700,
    );
    return machine;
  };

  it("is waited for", async () => {
    const machine = unbooted();
    machine.program(
      "cloud-init",
      `echo x >>"$root/asked"; [[ $(wc -l <"$root/asked") -lt 4 ]] || touch "$root${done}"; echo "status: running"`,
    );

    expect((await runStep(machine, "await_first_boot")).code).toBe(0);

    expect(machine.has("/ran")).toBe(false);
  });

  it("stops the step when it fails, and its failing step is named", async () => {
    const machine = unbooted();
    machine.program(
      "cloud-init",
      `echo "images, exit code 100" >"$root${failed}"; echo "status: running"`,
    );

    const outcome = await bootstrap(machine);

    expect(outcome.stderr.trim().split("\n").slice(-2)).toEqual([
      "first boot failed: images, exit code 100",
      'step "first boot" failed with exit code 1',
    ]);
    expect(deeds(machine)).toEqual([]);
  });

  it("runs again when it had failed before, so that a fixed cause needs no new machine", async () => {
    const machine = unbooted();
    machine.write(failed, "images, exit code 100\n");

    expect((await runStep(machine, "await_first_boot")).code).toBe(0);

    expect(machine.has("/ran")).toBe(true);
  });

  // What it prints where nothing runs any more (cloud-init status --help).
  it.each(["done", "error", "degraded", "disabled"])(
    "runs again when a reboot broke it off (%s)",
    async (status) => {
      const machine = unbooted();
      machine.program("cloud-init", `echo "status: ${status}"`);

      expect((await runStep(machine, "await_first_boot")).code).toBe(0);

      expect(machine.has("/ran")).toBe(true);
    },
  );
});

/** Every file below a folder with what is in it. */
const contents = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => `${path} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`)
    .sort();

describe.each([
  { role: "control plane", payload: controlPlane },
  { role: "worker", payload: worker },
])("a $role that is a member", ({ payload }) => {
  let machine: FakeMachine;
  beforeAll(async () => {
    machine = machineIn({}, payload);
    expect((await bootstrap(machine)).code).toBe(0);
  });
  beforeEach(() => {
    machine.write("/ready", calm.ready);
    machine.write("/etc/cni/net.d/10-it.conflist", "");
    machine.forgetCalls();
    ship(machine, payload);
  });

  it("changes nothing", async () => {
    const before = ["etc", "var/lib"].flatMap((folder) => contents(join(machine.root, folder)));

    expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });

    expect(deeds(machine)).toEqual([]);
    expect(machine.callsOf("kubeadm")).toEqual([]);
    expect(["etc", "var/lib"].flatMap((folder) => contents(join(machine.root, folder)))).toEqual(
      before,
    );
  });

  it("is not reset when it is not well, and the step says what it waited for", async () => {
    machine.write("/ready", "False KubeletNotReady the runtime is down");

    const outcome = await bootstrap(machine, { HANGS: "await_node" });

    expect(deeds(machine)).toEqual([]);
    expect(outcome.stderr.trim().split("\n").slice(-2)).toEqual([
      `node ${payload.machine}: Ready is False KubeletNotReady the runtime is down`,
      'step "node" failed with exit code 124',
    ]);
  });

  it("is well only when it is Ready and its kubelet has reported since, whatever the node's condition still says", async () => {
    machine.write("/ready", "False KubeletNotReady");
    machine.write("/lease", leaseOf("2020-01-01T00:00:00.000000Z"));
    machine.program(
      "sleep",
      `grep --quiet True "$root/ready" && echo '${leaseOf("2999-01-01T00:00:00.000000Z")}' >"$root/lease"
      echo "True KubeletReady" >"$root/ready"`,
    );

    const { code, stdout } = await runStep(machine, "await_node");

    expect(code).toBe(0);
    expect(stdout).toContain("the kubelet last reported at 2020-01-01T00:00:00.000000Z");
    const looks = machine.callsOf("curl").map((call) => /nodes|leases/.exec(call)?.[0]);
    // The last one is for its size.
    expect(looks).toEqual(["nodes", "nodes", "leases", "nodes", "leases", "nodes"]);
  });

  it("asks nobody whether it is Ready while it has no pod network, without which it cannot be", async () => {
    machine.removeFile("/etc/cni/net.d/10-it.conflist");

    const { code, stdout } = await runStep(machine, "node_is_ready");

    expect(code).toBe(1);
    expect(stdout).toContain(`node ${payload.machine}: no pod network yet`);
    expect(machine.callsOf("curl")).toEqual([]);
  });
});
