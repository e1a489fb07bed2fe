import {
  allWell,
  bootstrap,
  clusterWith,
  controlPlane,
  deeds,
  lastLine,
  listedControlPlane,
  listedNode,
  listedPod,
  machineIn,
  Member,
  peer,
  programs,
  runStep,
  ship,
  stale,
  World,
} from "../../../support/bootstrapped-machine";

describe("the other control planes", () => {
  const third: Member = {
    ID: "3",
    name: "zoned-test-cp-3",
    peerURLs: ["https://172.16.3.4:2380"],
    clientURLs: ["https://172.16.3.4:2379"],
  };
  const own: Member = { ...stale, ID: "2", clientURLs: ["https://172.16.2.5:2379"] };

  /** A machine that joins a cluster in which something is not well. */
  const joining = (files: Readonly<Record<string, unknown>>, world: Partial<World> = {}) => {
    const machine = machineIn({ members: [peer, third], ...world });
    for (const [name, content] of Object.entries(files)) {
      machine.write(`/${name}`, typeof content === "string" ? content : JSON.stringify(content));
    }
    machine.write("/etc/kubernetes/pki/etcd/healthcheck-client.crt", "");
    return machine;
  };
  it.each([
    {
      what: "a learner",
      world: { members: [peer, { ...third, isLearner: true }] },
      says: "etcd member zoned-test-cp-3 is still a learner",
    },
    {
      what: "a member that has not begun",
      world: { members: [peer, { ...third, name: "" }] },
      says: "etcd member at https://172.16.3.4:2380 has not begun",
    },
    {
      what: "a member that is not healthy",
      files: { health: '{"health":"false","reason":"RAFT NO LEADER"}' },
      says: "etcd member zoned-test-cp-1 is not healthy: .*RAFT NO LEADER",
    },
    {
      what: "an alarm",
      files: { alarms: { alarms: [{ memberID: "3", alarm: "NOSPACE" }] } },
      says: "etcd member zoned-test-cp-3: alarm NOSPACE",
    },
    {
      what: "a node that is not Ready",
      files: { objects: { items: clusterWith({ [peer.name]: listedNode(peer.name, "False") }) } },
      says: "node zoned-test-cp-1: Ready is False KubeletNotReady the runtime is down",
    },
    {
      what: "a static pod that is not ready",
      files: {
        objects: {
          items: clusterWith({
            "kube-scheduler-zoned-test-cp-1": listedPod("kube-scheduler-zoned-test-cp-1", "False"),
          }),
        },
      },
      says: "static pod kube-scheduler-zoned-test-cp-1 is not Ready",
    },
    {
      what: "a static pod that is missing",
      files: { objects: { items: clusterWith({ "etcd-zoned-test-cp-1": undefined }) } },
      says: "static pod etcd-zoned-test-cp-1 is not Ready",
    },
    {
      what: "an API that does not answer",
      files: {},
      kubectl: 'nodes,pods"*) echo "connection refused" >&2; exit 1',
      says: "the API: connection refused",
    },
  ])("hold up a machine with $what", async ({ files = {}, world, kubectl, says }) => {
    const machine = joining(files, world);
    if (kubectl) {
      const well = 'nodes,pods"*) cat "$root/objects"';
      machine.program("kubectl", programs.kubectl.replace(well, kubectl));
    }

    const { code, stdout } = await runStep(machine, "peers_are_well");

    expect(code).toBe(1);
    expect(stdout).toMatch(
      new RegExp(`no other machine was touched; .* run \`pulumi up\` again.*: .*${says}`),
    );
  });

  it("are asked by etcd's own certificate of this machine's member, and past every proxy", async () => {
    const machine = joining({});

    expect(await runStep(machine, "peers_are_well")).toEqual({ code: 0, stdout: "", stderr: "" });

    const calls = machine.callsOf("curl");
    expect(calls.map((call) => /https:\S+/.exec(call)![0])).toEqual([
      "https://127.0.0.1:2379/v3/cluster/member/list",
      "https://127.0.0.1:2379/v3/maintenance/alarm",
      "https://172.16.1.4:2379/health",
      "https://172.16.3.4:2379/health",
    ]);
    for (const call of calls) {
      expect(call).toContain("--cacert /etc/kubernetes/pki/etcd/ca.crt");
      expect(call).toContain("--cert /etc/kubernetes/pki/etcd/healthcheck-client.crt");
      expect(call).toContain("--noproxy *");
    }
  });

  it("are waited for until they are well", async () => {
    const machine = joining({ health: "down" });
    machine.program("sleep", `echo '{"health":"true"}' >"$root/health"`);

    expect((await runStep(machine, "await_peers")).code).toBe(0);
  });

  it("are asked when a machine has joined or was rebooted, until a run has seen them well, and not when nothing was touched", async () => {
    const machine = joining({ health: "down" });
    const run = async (health: string) => {
      machine.write("/health", health);
      machine.forgetCalls();
      ship(machine, controlPlane);
      const outcome = await bootstrap(machine, { HANGS: "await_peers" });
      const calls = [...machine.callsOf("curl"), ...machine.callsOf("kubectl")];
      const isAsked = calls.some((call) => /maintenance\/alarm|nodes,pods/.test(call));
      return { said: lastLine(outcome), isAsked };
    };
    const well = '{"health":"true"}';
    const held = { said: 'step "other control planes" failed with exit code 124', isAsked: true };

    expect(await run("down")).toEqual(held);
    expect(deeds(machine)).toEqual(["join"]);
    expect(await run("down")).toEqual(held);
    expect(await run(well)).toEqual({ said: "", isAsked: true });
    expect(await run("down")).toEqual({ said: "", isAsked: false });

    machine.write("/proc/sys/kernel/random/boot_id", "b0071d00-0000-4000-8000-000000000002\n");
    expect(await run("down")).toEqual(held);
    expect(await run("down")).toEqual(held);
    expect(await run(well)).toEqual({ said: "", isAsked: true });
    expect(await run("down")).toEqual({ said: "", isAsked: false });
  });

  it("need not be Ready where nobody knows when that can be", async () => {
    const machine = joining({
      objects: { items: clusterWith({ [peer.name]: listedNode(peer.name, "False") }) },
    });
    ship(machine, { ...controlPlane, awaitsReady: false });

    expect((await runStep(machine, "peers_are_well")).code).toBe(0);
  });

  it.each([
    { of: "five, whose machine is gone", members: 5, node: false, code: 0 },
    { of: "five, whose machine is there", members: 5, node: true, code: 1 },
    { of: "three, whose machine is gone", members: 3, node: false, code: 1 },
  ])("may lack one member of $of: exit code $code", async ({ members, node, code }) => {
    const others = [4, 5].map((index) => ({
      ...third,
      ID: `${index}`,
      name: `zoned-test-cp-${index}`,
      clientURLs: [`https://172.16.${index}.4:2379`],
    }));
    const machine = joining(
      {
        objects: {
          items: node ? [...allWell, ...listedControlPlane("zoned-test-cp-3")] : allWell,
        },
      },
      { members: [own, peer, third, ...others].slice(0, members) },
    );
    machine.program(
      "curl",
      programs.curl.replace("*2379/health*)", "*172.16.3.4:2379/health*) exit 7 ;;\n$&"),
    );

    expect((await runStep(machine, "peers_are_well")).code).toBe(code);
  });
});
