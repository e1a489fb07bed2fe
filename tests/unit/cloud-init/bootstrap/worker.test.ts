import {
  beforeJoining,
  bootstrap,
  calm,
  deeds,
  machineIn,
  programs,
  ship,
  worker,
  World,
} from "../../../support/bootstrapped-machine";

jest.setTimeout(120_000);

describe("a worker", () => {
  const workerIn = (world: Partial<World> = {}) => machineIn(world, worker);

  it("joins, and asks neither for its identity nor for etcd", async () => {
    const machine = workerIn();

    expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });

    expect(deeds(machine)).toEqual(["join"]);
    expect(machine.callsOf("curl").join()).not.toMatch(/169\.254|:2379/);
  });

  const kept = "/etc/zoned/patches/kubeletconfiguration!reserved.json";

  // learn.microsoft.com/azure/aks/node-resource-reservations
  it.each([
    [1, 3900, 30, "60m", "650Mi"],
    [2, 7900, 30, "100m", "650Mi"],
    [2, 3900, 70, "100m", "975Mi"],
    [4, 15900, 110, "140m", "2250Mi"],
    [8, 32000, 110, "180m", "2250Mi"],
    [16, 64000, 253, "260m", "5110Mi"],
    [32, 128000, 110, "420m", "2250Mi"],
    [64, 256000, 110, "740m", "2250Mi"],
  ])(
    "of %i cores and %i MiB, for %i pods, reserves %s and %s before it joins",
    async (cores, mebibytes, maxPods, cpu, memory) => {
      const machine = machineIn({}, { ...worker, maxPods });
      machine.program("nproc", `echo ${cores}`);
      machine.program("free", `printf 'total used\\nMem: ${mebibytes} 400\\nSwap: 0 0\\n'`);
      beforeJoining(machine, `cp "$root/${kept}" "$root/kept"`);

      expect((await bootstrap(machine)).code).toBe(0);

      expect(JSON.parse(machine.read("/kept"))).toEqual({ kubeReserved: { cpu, memory } });
    },
  );

  it("removes the node that a join has left which failed", async () => {
    const machine = workerIn({ failing: { join: 1 } });
    beforeJoining(machine, 'touch "$root/node"');

    expect((await bootstrap(machine)).code).toBe(0);

    expect(deeds(machine)).toEqual(["join", "reset", "delete node", "join"]);
  });

  it("removes its predecessor's node first, with its own token", async () => {
    const machine = workerIn({ node: true });
    await bootstrap(machine);

    expect(deeds(machine)).toEqual(["delete node", "join"]);
    expect(machine.callsOf("kubectl").find((call) => call.includes("delete"))).toBe(
      "--kubeconfig /etc/zoned/discovery.conf --request-timeout 30s delete node zoned-test-workers-1 --ignore-not-found --wait=false",
    );
  });

  it("is not configured anew where only its Node was not Ready in time", async () => {
    const machine = workerIn({ ready: "False KubeletNotReady" });
    expect((await bootstrap(machine, { HANGS: "await_node" })).code).toBe(124);
    machine.write("/ready", calm.ready);
    machine.forgetCalls();
    ship(machine, worker);

    expect((await bootstrap(machine)).code).toBe(0);
    expect(machine.callsOf("kubeadm")).toEqual([]);
  });

  it("resets itself after a join that failed, and tries again", async () => {
    const machine = workerIn({ failing: { join: 2 } });

    expect((await bootstrap(machine)).code).toBe(0);

    expect(deeds(machine)).toEqual(["join", "reset", "join", "reset", "join"]);
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
    expect((await bootstrap(refusedTimes(10))).code).toBe(0);
  });

  it("ends when its token has expired, and says how it gets another one", async () => {
    const outcome = await bootstrap(refusedTimes(1000));

    expect(outcome.code).toBe(1);
    expect(outcome.stderr.trim().split("\n").slice(-2)).toEqual([
      expect.stringMatching(
        /does not know the join token of zoned-test-workers-1.*run `pulumi up` again, without --replace/,
      ),
      'step "search for the API" failed with exit code 1',
    ]);
  });

  it("leaves the API's name to the balancer", async () => {
    const machine = workerIn();
    await bootstrap(machine);

    expect(machine.read("/etc/hosts")).not.toContain("# zoned");
  });

  it("does not wait for Ready where nobody knows when that can be", async () => {
    const machine = machineIn(
      { ready: "False KubeletNotReady" },
      { ...worker, awaitsReady: false },
    );

    expect((await bootstrap(machine)).code).toBe(0);
  });
});
