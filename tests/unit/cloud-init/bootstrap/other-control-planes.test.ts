import {
  allWell,
  asInitial,
  beforeJoining,
  bootstrap,
  clusterWith,
  controlPlane,
  deeds,
  lastLine,
  listedNode,
  listedPod,
  machineIn,
  Member,
  peer,
  programs,
  ship,
  stale,
  staticPods,
  World,
} from "../../../support/bootstrapped-machine";
import { FakeMachine } from "../../../support/fake-machine";

jest.setTimeout(120_000);

describe("the other control planes", () => {
  const third: Member = {
    ID: "3",
    name: "zoned-test-cp-3",
    peerURLs: ["https://172.16.3.4:2380"],
    clientURLs: ["https://172.16.3.4:2379"],
  };
  const own: Member = { ...stale, ID: "2", clientURLs: ["https://172.16.2.5:2379"] };

  /** A machine about to join a cluster in which something is not well. */
  const joining = (files: Readonly<Record<string, unknown>>, world: Partial<World> = {}) => {
    const machine = machineIn({ members: [peer, third], ...world });
    for (const [name, content] of Object.entries(files)) {
      machine.write(`/${name}`, typeof content === "string" ? content : JSON.stringify(content));
    }
    // The limit of a step is over as soon as it waits.
    machine.program("sleep", "kill $PPID");
    machine.program("timeout", 'shift 2; "$@"; code=$?; exit $((code == 143 ? 124 : code))');
    return machine;
  };
  const asked = (machine: FakeMachine) =>
    [...machine.callsOf("curl"), ...machine.callsOf("kubectl")].filter((call) =>
      /maintenance\/alarm|nodes,pods/.test(call),
    );

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
  ])("hold up the end of a join with $what", async ({ files = {}, world, kubectl, says }) => {
    const machine = joining(files, world);
    if (kubectl) {
      const well = 'nodes,pods"*) cat "$root/objects"';
      machine.program("kubectl", programs.kubectl.replace(well, kubectl));
    }

    const outcome = await bootstrap(machine);

    const [said = "", last] = outcome.stderr.trim().split("\n").slice(-2);
    expect(last).toBe('step "other control planes" failed with exit code 124');
    expect(said).toMatch(
      new RegExp(`no other machine was touched; .* run \`pulumi up\` again.*: .*${says}`),
    );
    expect(deeds(machine)).toEqual(["join"]);
  });

  it("are asked by etcd's own certificate of this machine's member, and past every proxy", async () => {
    const machine = joining({});

    expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });

    const calls = machine
      .callsOf("curl")
      .filter((call) => /127\.0\.0\.1:2379|2379\/health/.test(call));
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

    expect((await bootstrap(machine)).code).toBe(0);
  });

  it("are asked again by the next run, when the one that joined did not see them well", async () => {
    const machine = joining({ health: "down" });
    await bootstrap(machine);
    ship(machine, controlPlane);

    const again = await bootstrap(machine);
    machine.write("/health", '{"health":"true"}');
    ship(machine, controlPlane);
    const well = await bootstrap(machine);

    expect(lastLine(again)).toBe('step "other control planes" failed with exit code 124');
    expect(well.code).toBe(0);
  });

  it("are asked after a reboot, and not when nothing was touched", async () => {
    const machine = joining({});
    await bootstrap(machine);
    machine.write("/health", "down");
    const run = async () => {
      machine.forgetCalls();
      ship(machine, controlPlane);
      return await bootstrap(machine);
    };

    const untouched = await run();
    const askedUntouched = asked(machine);
    machine.write("/proc/sys/kernel/random/boot_id", "b0071d00-0000-4000-8000-000000000002\n");
    const rebooted = await run();
    const still = await run();
    machine.write("/health", '{"health":"true"}');
    const well = await run();
    await run();

    expect({ code: untouched.code, askedUntouched }).toEqual({ code: 0, askedUntouched: [] });
    expect([rebooted, still].map(lastLine)).toEqual(
      Array(2).fill('step "other control planes" failed with exit code 124'),
    );
    expect(well.code).toBe(0);
    expect(asked(machine)).toEqual([]);
  });

  it("are none for the machine that initializes", async () => {
    const machine = machineIn({ ...asInitial, api: "silent" });
    machine.write("/health", "down");

    expect((await bootstrap(machine)).code).toBe(0);

    expect(asked(machine)).toEqual([]);
  });

  it("need not be Ready where nobody knows when that can be", async () => {
    const machine = joining({
      objects: { items: clusterWith({ [peer.name]: listedNode(peer.name, "False") }) },
    });
    ship(machine, { ...controlPlane, awaitsReady: false });

    expect((await bootstrap(machine)).code).toBe(0);
  });

  it.each([
    { of: "five, whose machine is gone", members: 5, node: false, code: 0 },
    { of: "five, whose machine is there", members: 5, node: true, code: 124 },
    { of: "three, whose machine is gone", members: 3, node: false, code: 124 },
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
          items: node
            ? [...allWell, listedNode("zoned-test-cp-3"), ...staticPods("zoned-test-cp-3")]
            : allWell,
        },
      },
      { members: [peer, third, ...others].slice(0, members - 1) },
    );
    const more = `jq '.members += [${JSON.stringify(own)}]' <"$root/members"`;
    beforeJoining(machine, `all=$(${more}); echo "$all" >"$root/members"`);
    machine.program(
      "curl",
      programs.curl.replace("*2379/health*)", "*172.16.3.4:2379/health*) exit 7 ;;\n$&"),
    );

    expect((await bootstrap(machine)).code).toBe(code);
  });
});
