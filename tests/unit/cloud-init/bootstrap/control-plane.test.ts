import {
  asInitial,
  base64,
  beforeJoining,
  bootstrap,
  caKey,
  controlPlane,
  deeds,
  hostsEntry,
  lastLine,
  machineIn,
  peer,
  programs,
  ship,
  someoneElse,
  stale,
  token,
} from "../../../support/bootstrapped-machine";
import { FakeMachine } from "../../../support/fake-machine";

jest.setTimeout(120_000);

describe("a control plane", () => {
  it.each([
    {
      who: "the initial control plane",
      world: { ...asInitial, api: "silent" as const },
      action: ["init"],
      ends: "initialized",
    },
    {
      who: "the initial control plane",
      world: { ...asInitial, api: "answers" as const },
      action: ["join"],
      ends: "joined",
    },
    { who: "another one", world: { api: "answers" as const }, action: ["join"], ends: "joined" },
  ])("does $action when it is $who and the API $world.api", async ({ world, action, ends }) => {
    const machine = machineIn(world);

    expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });

    expect(deeds(machine)).toEqual(action);
    expect(machine.read("/var/lib/zoned/joined")).toBe(`${ends}\n`);
  });

  it("searches for the API right before it initializes, when first boot is over", async () => {
    const machine = machineIn({ ...asInitial, api: "silent" });
    machine.removeFile("/var/lib/zoned/first-boot.done");
    machine.program("cloud-init", 'touch "$root/var/lib/zoned/first-boot.done"');

    const { stdout } = await bootstrap(machine);

    const steps = [...stdout.matchAll(/ bootstrap: (.+): done after/g)].map(([, step]) => step);
    expect(steps.slice(0, 6)).toEqual([
      "payload",
      "first boot",
      "kernel modules",
      "packages",
      "search for the API",
      "kubeadm init",
    ]);
  });

  it("joins as the initial control plane too where the API misses two of its questions", async () => {
    const machine = machineIn(asInitial);
    machine.program(
      "curl",
      `if [[ $* == *readyz* && $* != *--resolve* ]]; then
        echo x >>"$root/questions"; (($(wc -l <"$root/questions") > 2)) || exit 28
      fi
      ${programs.curl}`,
    );

    expect((await bootstrap(machine)).code).toBe(0);

    expect(deeds(machine)).toEqual(["join"]);
  });

  it("knows the initial control plane's id however it is spelt", async () => {
    const machine = machineIn({
      vmId: controlPlane.initialControlPlane!.toUpperCase(),
      api: "silent",
    });

    expect((await bootstrap(machine)).code).toBe(0);

    expect(deeds(machine)).toEqual(["init"]);
  });

  it("never initializes when it is not the initial control plane, and says what to do", async () => {
    const machine = machineIn({ api: "silent" });

    const outcome = await bootstrap(machine, { HANGS: "decide" });

    expect(outcome.code).toBe(124);
    expect(deeds(machine)).toEqual([]);
    expect(outcome.stderr).toContain(`vmId ${someoneElse}`);
    expect(outcome.stderr).toContain(`vmId ${controlPlane.initialControlPlane}`);
    expect(outcome.stderr).toContain("says how a new, empty cluster takes their place");
  });

  it.each([{ vmId: someoneElse }, asInitial])(
    "does nothing where another cluster answers at its name ($vmId)",
    async ({ vmId }) => {
      const machine = machineIn({ vmId, api: "foreign" });

      const outcome = await bootstrap(machine);

      expect(outcome.code).toBe(1);
      expect(deeds(machine)).toEqual([]);
      expect(outcome.stderr).toContain("somebody else's cluster answers");
    },
  );

  it.each([
    { when: "its third question", probes: 3, asked: 3 },
    { when: "none", probes: 1000, asked: 25 },
  ])(
    "ends when the balancer sends somebody to it, or after two minutes ($when)",
    async ({ probes, asked }) => {
      const machine = machineIn(
        { ...asInitial, api: "silent" },
        { ...controlPlane, apiAddress: "203.0.113.7" },
      );
      machine.write("/probes", `${probes}`);

      expect((await bootstrap(machine)).code).toBe(0);

      const through = machine.callsOf("curl").filter((call) => call.includes(":203.0.113.7"));
      expect(through).toHaveLength(asked);
      expect(through[0]).toContain(
        "--resolve zoned-test.westeurope.cloudapp.azure.com:6443:203.0.113.7",
      );
    },
  );

  it("knows its entry in /etc/hosts when cloud-init has written the file anew", async () => {
    const machine = machineIn();
    machine.write(
      "/etc/hosts",
      `127.0.0.1\tlocalhost\n127.0.0.1\t${controlPlane.apiName}# zoned\n127.0.0.1 not${controlPlane.apiName}\n`,
    );
    machine.write("/etc/kubernetes/kubelet.conf", "");

    expect((await bootstrap(machine)).code).toBe(0);

    expect(machine.read("/hosts-at-join")).not.toMatch(/\szoned-test/);
    expect(machine.read("/etc/hosts").trim().split("\n").slice(1)).toEqual([
      `127.0.0.1 not${controlPlane.apiName}`,
      hostsEntry,
    ]);
  });

  it("means itself by the API's name before it initializes", async () => {
    const machine = machineIn({ ...asInitial, api: "silent" });
    await bootstrap(machine);

    expect(machine.read("/hosts-at-init")).toContain(hostsEntry);
  });

  it.each([
    ["gives the cluster the configuration that it is to join with", "of before", 1],
    ["joins with the configuration that the cluster has already", "of now", 0],
  ])("%s", async (_, has, times) => {
    const machine = machineIn({}, { ...controlPlane, clusterConfiguration: "of now" });
    const shown = `case $* in *jsonpath*) printf '${has}' ;;`;
    machine.program("kubectl", programs.kubectl.replace("case $* in", shown));

    expect((await bootstrap(machine)).code).toBe(0);

    const upload =
      "init phase upload-config all --config /etc/zoned/kubeadm-init.yaml --kubeconfig /etc/zoned/discovery.conf";
    const calls = machine.callsOf("kubeadm").filter((call) => /upload-config|^join/.test(call));
    expect(calls).toEqual([...Array(times).fill(upload), expect.stringMatching(/^join/)]);
    const noted = machine
      .callsOf("kubectl")
      .filter((call) => call.includes("configuration=of now"));
    expect(noted).toHaveLength(times);
  });

  it("notes the configuration that it initializes the cluster with", async () => {
    const machine = machineIn(
      { ...asInitial, api: "silent" },
      { ...controlPlane, clusterConfiguration: "of now" },
    );

    expect((await bootstrap(machine)).code).toBe(0);

    expect(machine.callsOf("kubectl").join()).toMatch(
      /annotate configmap kubeadm-config --overwrite zoned\/configuration=of now/,
    );
  });

  it.each([stale, { ...stale, peerURLs: ["https://172.16.2.9:2380"] }])(
    "removes its predecessor's etcd member ($peerURLs) and node before it joins, and nobody else's",
    async (predecessor) => {
      const machine = machineIn({ members: [peer, predecessor], node: true });

      expect((await bootstrap(machine)).code).toBe(0);

      expect(deeds(machine)).toEqual(["remove member", "delete node", "join"]);
      expect(JSON.parse(machine.read("/members")).members).toEqual([peer]);
    },
  );

  it("trusts all CAs while it joins, where others come to be trusted", async () => {
    const machine = machineIn({}, { ...controlPlane, tasks: ["cas"] });
    machine.program(
      "kubeadm",
      programs.kubeadm
        .replace(`echo "minted ${token}"`, 'echo "    certificate-authority-data: b25l"')
        .replace("join*)", 'join*) cp "$root/etc/zoned/discovery.conf" "$root/discovery-at-join";'),
    );

    expect((await bootstrap(machine)).code).toBe(0);

    expect(machine.read("/discovery-at-join")).toBe(
      `    certificate-authority-data: ${base64("the CA")}\n`,
    );
  });

  /** Made for another version: kubeadm and the kubelet come by a call of `first-boot`, which does this first. */
  const madeForAnother = (does = "") => {
    const machine = machineIn();
    machine.program(
      "kubeadm",
      `[[ $1 != version || -e $root/kubeadm ]] || { echo v9.9.8; exit; }\n${programs.kubeadm}`,
    );
    machine.program(
      "kubelet",
      `[[ -e $root/kubelet ]] || { echo Kubernetes v9.9.8; exit; }\n${programs.kubelet}`,
    );
    machine.program(
      "first-boot",
      `${does}\n[[ $1 != install_kubernetes ]] || touch "$root"/{kubeadm,kubelet}`,
    );
    return machine;
  };
  const matching = ["add_package_source", "install_kubernetes", "pull_images"];
  const matched = (machine: FakeMachine) =>
    machine.callsOf("first-boot").filter((call) => matching.includes(call));

  it("installs the version of the cluster on a machine that was made for another", async () => {
    const machine = madeForAnother();

    expect((await bootstrap(machine)).code).toBe(0);

    expect(matched(machine)).toEqual(matching);
  });

  it.each([
    ["between kubeadm and the kubelet", "install_kubernetes", 'touch "$root/kubeadm"'],
    ["while it pulled images", "pull_images", ""],
  ])(
    "installs it again, and pulls its images, where a try has ended %s",
    async (_, during, does) => {
      const machine = madeForAnother(
        `if [[ $1 == ${during} && ! -e $root/tried ]]; then touch "$root/tried"; ${does || ":"}; exit 137; fi`,
      );

      expect((await bootstrap(machine)).code).toBe(0);

      expect(matched(machine).slice(-3)).toEqual(matching);
      expect(matched(machine).filter((call) => call === "install_kubernetes")).toHaveLength(2);
    },
  );

  it("names both versions where the kubelet is of another one after its installation", async () => {
    const machine = madeForAnother();
    machine.program("kubelet", "echo Kubernetes v9.9.8");

    const outcome = await bootstrap(machine);

    expect(lastLine(outcome)).toBe('step "packages" failed with exit code 1');
    expect(outcome.stderr).toMatch(/\/kubelet is of version v9\.9\.8 .*v9\.9\.9/);
    expect(deeds(machine)).toEqual([]);
  });

  it("names both versions where kubeadm is of another one after its installation", async () => {
    const machine = machineIn();
    machine.program(
      "kubeadm",
      `[[ $1 != version ]] || { echo v9.9.8; exit; }\n${programs.kubeadm}`,
    );

    const outcome = await bootstrap(machine);

    expect(lastLine(outcome)).toBe('step "packages" failed with exit code 1');
    expect(outcome.stderr).toMatch(/\/kubeadm is of version v9\.9\.8 .*v9\.9\.9/);
    expect(deeds(machine)).toEqual([]);
  });

  it.each([
    { what: "etcd", change: (machine: FakeMachine) => machine.write("/own-etcd-is-down", "") },
    {
      what: "API server",
      change: (machine: FakeMachine) =>
        machine.program("curl", `[[ $* != *--resolve*:127.0.0.1* ]] || exit 22\n${programs.curl}`),
    },
  ])("is not done before its own $what is well", async ({ change }) => {
    const machine = machineIn();
    change(machine);

    const outcome = await bootstrap(machine, { HANGS: "await_control_plane" });

    expect(lastLine(outcome)).toBe('step "control plane" failed with exit code 124');
  });

  it("knows a member that never started by its address", async () => {
    const machine = machineIn({ members: [peer, { ...stale, name: undefined }] });

    expect((await bootstrap(machine)).code).toBe(0);

    expect(JSON.parse(machine.read("/members")).members).toEqual([peer]);
  });

  it("asks for etcd's members again while nobody answers, as a new leader is elected", async () => {
    const outcome = await bootstrap(machineIn({ failing: { "member-list": 12 } }));

    expect(outcome.code).toBe(0);
    expect(outcome.stdout).not.toContain("next try");
  });

  it("undoes a join that failed half-way, member first, and tries again", async () => {
    const machine = machineIn({ failing: { join: 1 } });
    const members = JSON.stringify({ members: [peer, stale] });
    beforeJoining(machine, `touch "$root/node"; echo '${members}' >"$root/members"`);

    expect((await bootstrap(machine)).code).toBe(0);

    expect(deeds(machine)).toEqual(["join", "remove member", "reset", "delete node", "join"]);
    expect(machine.read("/hosts-at-join")).not.toContain("# zoned");
    expect(machine.read("/etc/kubernetes/pki/ca.key")).toBe(caKey);
  });

  it("takes its member out of etcd also while the API answers nobody for want of a majority", async () => {
    const machine = machineIn({ failing: { join: 1 } });
    const members = JSON.stringify({ members: [peer, stale] });
    beforeJoining(
      machine,
      `(($(cat "$root/failing/join") == 0)) || echo '${members}' >"$root/members"`,
    );
    machine.program(
      "kubectl",
      `if grep --quiet ${stale.ID} "$root/members"; then exit 1; fi\n${programs.kubectl}`,
    );

    expect((await bootstrap(machine)).code).toBe(0);

    expect(deeds(machine)).toEqual(["join", "remove member", "reset", "join"]);
  });

  const withEtcdThatAnswersLate = (times: number) => {
    const machine = machineIn({ failing: { join: times } });
    machine.program(
      "kubeadm",
      programs.kubeadm
        .replace("join went wrong", "error: error execution phase etcd-join: deadline exceeded")
        .replace("exit 7", "exit 1"),
    );
    return machine;
  };

  it("goes on with kubeadm's own phase when etcd did not answer it in time, and undoes nothing", async () => {
    const machine = withEtcdThatAnswersLate(2);

    expect((await bootstrap(machine)).code).toBe(0);

    expect(machine.callsOf("kubeadm").filter((call) => call.startsWith("join"))).toEqual([
      "join --config /etc/zoned/kubeadm-join.yaml",
      "join phase etcd-join --config /etc/zoned/kubeadm-join.yaml",
      "join phase etcd-join --config /etc/zoned/kubeadm-join.yaml",
      "join --config /etc/zoned/kubeadm-join.yaml --skip-phases preflight,control-plane-prepare,check-etcd,kubelet-start,etcd-join",
    ]);
    expect(deeds(machine)).toEqual(["join", "join", "join", "join"]);
  });

  it("undoes a join to which etcd does not answer at all", async () => {
    const machine = withEtcdThatAnswersLate(6);

    expect((await bootstrap(machine)).code).toBe(0);

    expect(deeds(machine)).toEqual([...Array(6).fill("join"), "reset", "join"]);
  });

  it.each([
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/manifests/etcd.yaml",
    "/var/lib/etcd/member/snap/db",
  ])(
    "undoes what an earlier run left half joined (%s) before it does anything else",
    async (left) => {
      const machine = machineIn({ members: [peer, stale], node: true });
      machine.write(left, "");

      expect((await bootstrap(machine)).code).toBe(0);

      expect(deeds(machine)).toEqual(["remove member", "reset", "delete node", "join"]);
    },
  );

  it("resets nothing while etcd still counts it as a member, since the others might lose their majority", async () => {
    const machine = machineIn({ failing: { join: 1, "member-list": 1000 } });
    machine.write("/etc/kubernetes/kubelet.conf", "");

    expect((await bootstrap(machine)).code).not.toBe(0);

    expect(deeds(machine)).toEqual([]);
  });

  it("resets nothing after a failed join either, while etcd may count it as a member", async () => {
    const machine = machineIn();
    beforeJoining(
      machine,
      'mkdir "$root/failing"; echo 1000 >"$root/failing/member-list"; echo 1 >"$root/failing/join"',
    );

    expect((await bootstrap(machine)).code).not.toBe(0);

    expect(deeds(machine)).toEqual(["join"]);
  });

  it("does not initialize a cluster where it has begun to join, even as the initial control plane", async () => {
    const machine = machineIn({ ...asInitial, api: "silent" });
    machine.write("/etc/kubernetes/kubelet.conf", "");

    const outcome = await bootstrap(machine);

    expect(outcome.code).toBe(1);
    expect(deeds(machine)).toEqual([]);
    expect(outcome.stderr).toContain("this machine has begun to join one");
  });

  it("begins anew where initialization broke off, and still initializes once", async () => {
    const machine = machineIn({ ...asInitial, api: "silent", failing: { init: 1 } });

    expect((await bootstrap(machine)).code).toBe(0);

    expect(deeds(machine)).toEqual(["init", "reset", "init"]);
  });

  it("joins a cluster that is there by now, where its own initialization broke off in an earlier run", async () => {
    const machine = machineIn(asInitial);
    machine.write("/var/lib/zoned/initialization", "");
    machine.write("/etc/kubernetes/manifests/etcd.yaml", "");

    expect((await bootstrap(machine)).code).toBe(0);

    expect(deeds(machine)).toEqual(["reset", "join"]);
  });

  it("initializes no second cluster after a initialization that ended well", async () => {
    const machine = machineIn({ ...asInitial, api: "silent" });
    await bootstrap(machine);
    ship(machine, controlPlane);

    expect((await bootstrap(machine)).code).toBe(0);

    expect(deeds(machine)).toEqual(["init"]);
  });

  it("initializes without waiting for Ready, since the pod network comes after it", async () => {
    const machine = machineIn({ ...asInitial, api: "silent", ready: "False KubeletNotReady" });

    expect((await bootstrap(machine)).code).toBe(0);
  });

  it("waits for Ready as the initial control plane too, once there is a pod network", async () => {
    const machine = machineIn({ ...asInitial, api: "silent", ready: "False KubeletNotReady" });
    machine.write("/etc/cni/net.d/10-canal.conflist", "");

    expect(lastLine(await bootstrap(machine, { HANGS: "await_node" }))).toBe(
      'step "node" failed with exit code 124',
    );
  });
});
