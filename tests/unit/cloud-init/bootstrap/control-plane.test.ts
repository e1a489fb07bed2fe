import { bootstrapText, type Payload } from "../../../../components/machine/payload";
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
  runStep,
  script,
  ship,
  someoneElse,
  stale,
  token,
  World,
} from "../../../support/bootstrapped-machine";
import { FakeMachine } from "../../../support/fake-machine";
import { Outcome } from "../../../support/tools";

const membersOf = (machine: FakeMachine) => JSON.parse(machine.read("/members")).members;

describe("the initial control plane, where no API answers", () => {
  const payload = { ...controlPlane, clusterConfiguration: "of now", apiAddress: "203.0.113.7" };
  let machine: FakeMachine;
  let outcome: Outcome;

  beforeAll(async () => {
    machine = machineIn(
      {
        // Azure's and Pulumi's spellings of an id may differ.
        vmId: controlPlane.initialControlPlane!.toUpperCase(),
        ...{ api: "silent", ready: "False KubeletNotReady" },
      },
      payload,
    );
    machine.removeFile("/var/lib/zoned/first-boot.done");
    machine.program("cloud-init", 'touch "$root/var/lib/zoned/first-boot.done"');
    machine.write("/probes", "3");
    machine.write("/health", "down");
    const prints = '[[ $* == *--skip-token-print* ]] || echo "--token abcdef.of-its-own";';
    machine.program("kubeadm", programs.kubeadm.replace("    init*)", `    init*) ${prints}`));
    outcome = await bootstrap(machine);
  });

  it("initializes the cluster, and does not wait for Ready, since the pod network comes after it", () => {
    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    expect(deeds(machine)).toEqual(["init"]);
    expect(machine.read("/var/lib/zoned/joined")).toBe("initialized\n");
  });

  it("searches for the API right before, when first boot is over", () => {
    const steps = [...outcome.stdout.matchAll(/ bootstrap: (.+): done after/g)];
    expect(steps.map(([, step]) => step).slice(0, 6)).toEqual([
      "payload",
      "first boot",
      "kernel modules",
      "packages",
      "search for the API",
      "kubeadm init",
    ]);
  });

  it("means itself by the API's name before it initializes", () => {
    expect(machine.read("/hosts-at-init")).toContain(hostsEntry);
  });

  it("notes the configuration that it initializes the cluster with", () => {
    expect(machine.callsOf("kubectl").join()).toMatch(
      /annotate configmap kubeadm-config --overwrite zoned\/configuration=of now/,
    );
  });

  it("ends when the balancer sends somebody to it", () => {
    const through = machine.callsOf("curl").filter((call) => call.includes(":203.0.113.7"));
    expect(through).toHaveLength(3);
    expect(through[0]).toContain(`--resolve ${controlPlane.apiName}:6443:203.0.113.7`);
  });

  it("asks no other control planes", () => {
    expect(machine.callsOf("curl").join()).not.toContain("maintenance/alarm");
    expect(machine.callsOf("kubectl").join()).not.toContain("nodes,pods");
  });

  it("writes no token into the log that kubeadm would print of its own accord", () => {
    const said = outcome.stdout + outcome.stderr + machine.read("/var/log/zoned.log");
    expect(said).not.toContain("abcdef.of-its-own");
  });

  it("initializes no second cluster, and waits for Ready once there is a pod network", async () => {
    machine.write("/etc/cni/net.d/10-canal.conflist", "");
    ship(machine, payload);

    const again = await bootstrap(machine, { HANGS: "await_node" });

    expect(lastLine(again)).toBe('step "node" failed with exit code 124');
    expect(deeds(machine)).toEqual(["init"]);
  });
});

it("the initial control plane waits two minutes for a balancer, and goes on", async () => {
  const machine = machineIn({}, { ...controlPlane, apiAddress: "203.0.113.7" });
  machine.write("/probes", "1000");

  expect((await runStep(machine, "await_balancer")).code).toBe(0);

  expect(machine.callsOf("curl")).toHaveLength(25);
  expect(machine.callsOf("sleep")).toEqual(Array(24).fill("5"));
});

it("the initial control plane joins where an API answers, though it missed two questions", async () => {
  const machine = machineIn(asInitial);
  machine.program(
    "curl",
    `if [[ $* == *readyz* ]]; then
      echo x >>"$root/questions"; (($(wc -l <"$root/questions") > 2)) || exit 28
    fi
    ${programs.curl}`,
  );

  expect((await runStep(machine, "decide")).code).toBe(0);

  expect(machine.read("/run/zoned/decision")).toBe("join\n");
});

it("another control plane never initializes, and says what to do", async () => {
  const machine = machineIn({ api: "silent" });

  const outcome = await bootstrap(machine, { HANGS: "decide" });

  expect(outcome.code).toBe(124);
  expect(deeds(machine)).toEqual([]);
  expect(outcome.stderr).toContain(`vmId ${someoneElse}`);
  expect(outcome.stderr).toContain(`vmId ${controlPlane.initialControlPlane}`);
  expect(outcome.stderr).toContain("says how a new, empty cluster takes their place");
});

it.each([{ vmId: someoneElse }, asInitial])(
  "a control plane does nothing where another cluster answers at its name ($vmId)",
  async ({ vmId }) => {
    const machine = machineIn({ vmId, api: "foreign" });

    const { code, stdout } = await runStep(machine, "decide");

    expect(code).toBe(1);
    expect(machine.has("/run/zoned/decision")).toBe(false);
    expect(stdout).toContain("somebody else's cluster answers");
  },
);

describe("a control plane that joins", () => {
  /** In a cluster that was given this configuration before. */
  const joining = (has: string, world: Partial<World>, tasks: Payload["tasks"] = []) => {
    const machine = machineIn(world, { ...controlPlane, clusterConfiguration: "of now", tasks });
    const shown = `case $* in *jsonpath*) printf '${has}' ;;`;
    machine.program("kubectl", programs.kubectl.replace("case $* in", shown));
    return machine;
  };
  const uploads = (machine: FakeMachine) => ({
    calls: machine.callsOf("kubeadm").filter((call) => /upload-config|^join/.test(call)),
    noted: machine.callsOf("kubectl").filter((call) => call.includes("configuration=of now")),
  });

  describe("where a predecessor has left its member, by another address, and its Node", () => {
    const elsewhere = { ...stale, peerURLs: ["https://172.16.2.9:2380"] };
    let machine: FakeMachine;
    beforeAll(async () => {
      machine = joining("of before", { members: [peer, elsewhere], node: true }, ["cas"]);
      // As cloud-init writes it anew.
      machine.write(
        "/etc/hosts",
        `127.0.0.1\tlocalhost\n127.0.0.1\t${controlPlane.apiName}# zoned\n127.0.0.1 not${controlPlane.apiName}\n`,
      );
      machine.program(
        "kubeadm",
        programs.kubeadm
          .replace(`echo "minted ${token}"`, 'echo "    certificate-authority-data: b25l"')
          .replace("join*)", 'join*) cp "$root/etc/zoned/discovery.conf" "$root/at-join";'),
      );
      expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });
    });

    it("removes these first, and nobody else's", () => {
      expect(deeds(machine)).toEqual(["remove member", "delete node", "join"]);
      expect(membersOf(machine)).toEqual([peer]);
      expect(machine.read("/var/lib/zoned/joined")).toBe("joined\n");
    });

    it("knows its entry in /etc/hosts when cloud-init has written the file anew", () => {
      expect(machine.read("/hosts-at-join")).not.toMatch(/\szoned-test/);
      expect(machine.read("/etc/hosts").trim().split("\n").slice(1)).toEqual([
        `127.0.0.1 not${controlPlane.apiName}`,
        hostsEntry,
      ]);
    });

    it("gives the cluster the configuration that it is to join with", () => {
      const { calls, noted } = uploads(machine);
      expect(calls).toEqual([
        "init phase upload-config all --config /etc/zoned/kubeadm-init.yaml --kubeconfig /etc/zoned/discovery.conf",
        expect.stringMatching(/^join/),
      ]);
      expect(noted).toHaveLength(1);
    });

    it("trusts all CAs while it joins, where others come to be trusted", () => {
      expect(machine.read("/at-join")).toBe(
        `    certificate-authority-data: ${base64("the CA")}\n`,
      );
    });
  });

  describe("where its predecessor's member never started, and the cluster has its configuration", () => {
    let machine: FakeMachine;
    let outcome: Outcome;
    beforeAll(async () => {
      const world = { members: [peer, { ...stale, name: undefined }] };
      machine = joining("of now", { ...world, failing: { "member-list": 12 } });
      const once = 'mkdir "$root/$what" 2>/dev/null && exit 22';
      machine.program(
        "curl",
        `what=; case $* in *2381/health*) what=own-etcd ;; *--resolve*:127.0.0.1*readyz) what=own-api ;; esac
        [[ -z $what ]] || { ${once}; }
        ${programs.curl}`,
      );
      outcome = await bootstrap(machine);
    });

    it("knows the member by its address", () => {
      expect(outcome.code).toBe(0);
      expect(membersOf(machine)).toEqual([peer]);
    });

    it("gives the cluster none", () => {
      expect(uploads(machine)).toEqual({ calls: [expect.stringMatching(/^join/)], noted: [] });
    });

    it("asks for etcd's members again while nobody answers, as a new leader is elected", () => {
      expect(outcome.stdout).not.toContain("next try");
    });

    it("is not done before its own etcd and API server are well", () => {
      const asked = machine
        .callsOf("curl")
        .flatMap((call) => /2381\/health|:127\.0\.0\.1 .*readyz/.exec(call)?.[0].slice(0, 4) ?? []);
      expect(asked.slice(0, 5)).toEqual([":127", ":127", "2381", ":127", "2381"]);
    });
  });
});

describe("a control plane that was made for another version", () => {
  /** kubeadm and the kubelet come by a call of `first-boot`, which does this first. */
  const madeForAnother = (does = "") => {
    const machine = machineIn();
    machine.program("kubeadm", '[[ -e $root/kubeadm ]] && echo v9.9.9 || echo "v9.9.8"');
    machine.program(
      "kubelet",
      '[[ -e $root/kubelet ]] && echo "Kubernetes v9.9.9" || echo "Kubernetes v9.9.8"',
    );
    machine.program(
      "first-boot",
      `${does}\n[[ $1 != install_kubernetes ]] || touch "$root"/{kubeadm,kubelet}`,
    );
    return machine;
  };
  const matching = ["add_package_source", "install_kubernetes", "pull_images"];

  it("installs the version of the cluster", async () => {
    const machine = madeForAnother();

    expect((await runStep(machine, "match_version")).code).toBe(0);

    expect(machine.callsOf("first-boot")).toEqual(matching);
  });

  it.each([
    ["between kubeadm and the kubelet", "install_kubernetes", 'touch "$root/kubeadm"', 2],
    ["while it pulled images", "pull_images", "", 3],
  ])(
    "installs it again, and pulls its images, where a try has ended %s",
    async (_, during, does, calls) => {
      const machine = madeForAnother(
        `if [[ $1 == ${during} && ! -e $root/tried ]]; then touch "$root/tried"; ${does || ":"}; exit 137; fi`,
      );

      expect((await runStep(machine, "match_version")).code).toBe(137);
      expect((await runStep(machine, "match_version")).code).toBe(0);

      expect(machine.callsOf("first-boot")).toEqual([...matching.slice(0, calls), ...matching]);
    },
  );

  it.each(["kubeadm", "kubelet"])(
    "names both versions where %s is of another one after its installation",
    async (program) => {
      const machine = madeForAnother();
      machine.program(program, 'echo "v9.9.8 v9.9.8"');

      const { code, stdout } = await runStep(machine, "match_version");

      expect(code).toBe(1);
      expect(stdout).toMatch(new RegExp(`/${program} is of version v9\\.9\\.8 .*v9\\.9\\.9`));
    },
  );
});

describe("a join of a control plane", () => {
  const members = JSON.stringify({ members: [peer, stale] });

  it("that failed half-way is undone, member first, and tried again", async () => {
    const machine = machineIn({ failing: { join: 1 } });
    beforeJoining(machine, `touch "$root/node"; echo '${members}' >"$root/members"`);

    expect((await bootstrap(machine)).code).toBe(0);

    expect(deeds(machine)).toEqual(["join", "remove member", "reset", "delete node", "join"]);
    expect(machine.read("/hosts-at-join")).not.toContain("# zoned");
    expect(machine.read("/etc/kubernetes/pki/ca.key")).toBe(caKey);
  });

  it("takes its member out of etcd also while the API answers nobody for want of a majority", async () => {
    const machine = machineIn({ failing: { join: 1 } });
    beforeJoining(
      machine,
      `(($(cat "$root/failing/join") == 0)) || echo '${members}' >"$root/members"`,
    );
    machine.program(
      "kubectl",
      `if grep --quiet ${stale.ID} "$root/members"; then exit 1; fi\n${programs.kubectl}`,
    );

    expect((await runStep(machine, "join")).code).toBe(7);

    expect(deeds(machine)).toEqual(["join", "remove member", "reset"]);
  });

  const withEtcdThatAnswersLate = (times: number) => {
    const machine = machineIn({ failing: { join: times } });
    machine.program(
      "kubeadm",
      programs.kubeadm.replace(
        "join went wrong",
        "error: error execution phase etcd-join: deadline exceeded",
      ),
    );
    return machine;
  };

  it("goes on with kubeadm's own phase when etcd did not answer it in time, and undoes nothing", async () => {
    const machine = withEtcdThatAnswersLate(2);

    expect((await runStep(machine, "join")).code).toBe(0);

    expect(machine.callsOf("kubeadm").filter((call) => call.startsWith("join"))).toEqual([
      "join --config /etc/zoned/kubeadm-join.yaml",
      "join phase etcd-join --config /etc/zoned/kubeadm-join.yaml",
      "join phase etcd-join --config /etc/zoned/kubeadm-join.yaml",
      "join --config /etc/zoned/kubeadm-join.yaml --skip-phases preflight,control-plane-prepare,check-etcd,kubelet-start,etcd-join",
    ]);
    expect(deeds(machine)).toEqual(["join", "join", "join", "join"]);
  });

  it("is undone where etcd does not answer at all", async () => {
    const machine = withEtcdThatAnswersLate(6);

    expect((await runStep(machine, "join")).code).toBe(7);

    expect(deeds(machine)).toEqual([...Array(6).fill("join"), "reset"]);
  });

  it.each([
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/manifests/etcd.yaml",
    "/var/lib/etcd/member/snap/db",
  ])("begins with undoing what an earlier run left half joined (%s)", async (left) => {
    const machine = machineIn({ members: [peer, stale], node: true });
    machine.write(left, "");

    expect((await runStep(machine, "join")).code).toBe(0);

    expect(deeds(machine)).toEqual(["remove member", "reset", "delete node", "join"]);
  });

  it("resets nothing while etcd still counts it as a member, since the others might lose their majority", async () => {
    const machine = machineIn({ failing: { "member-list": 1000 } });
    machine.write("/etc/kubernetes/kubelet.conf", "");

    expect((await runStep(machine, "join")).code).not.toBe(0);

    expect(deeds(machine)).toEqual([]);
  });

  it("resets nothing after it failed either, while etcd may count it as a member", async () => {
    const machine = machineIn({ failing: { join: 1 } });
    beforeJoining(machine, 'echo 1000 >"$root/failing/member-list"');

    expect((await runStep(machine, "join")).code).toBe(7);

    expect(deeds(machine)).toEqual(["join"]);
  });

  it("keeps the initial control plane from initializing a cluster", async () => {
    const machine = machineIn({ ...asInitial, api: "silent" });
    machine.write("/etc/kubernetes/kubelet.conf", "");

    const { code, stdout } = await runStep(machine, "decide");

    expect(code).toBe(1);
    expect(machine.has("/run/zoned/decision")).toBe(false);
    expect(stdout).toContain("this machine has begun to join one");
  });
});

describe("an initialization that broke off", () => {
  it("begins anew, and still initializes once", async () => {
    const machine = machineIn({ ...asInitial, api: "silent", failing: { init: 1 } });

    expect((await runStep(machine, "initialize")).code).toBe(7);
    expect((await runStep(machine, "initialize")).code).toBe(0);

    expect(deeds(machine)).toEqual(["init", "reset", "init"]);
  });

  it("gives way to a cluster that is there by now", async () => {
    const machine = machineIn(asInitial);
    machine.write("/var/lib/zoned/initialization", "");
    machine.write("/etc/kubernetes/manifests/etcd.yaml", "");

    expect((await runStep(machine, "decide")).code).toBe(0);

    expect(deeds(machine)).toEqual(["reset"]);
    expect(machine.read("/run/zoned/decision")).toBe("join\n");
  });
});

describe("a control plane that has joined", () => {
  let machine: FakeMachine;
  beforeAll(async () => {
    machine = machineIn();
    expect((await bootstrap(machine)).code).toBe(0);
  });

  it("trusts nobody who speaks for the API but this cluster's CA, and goes past every proxy", () => {
    // Nothing that is asked may hold a step for ever.
    for (const call of machine.callsOf("curl")) expect(call).toMatch(/--max-time \d+/);
    const asked = machine.callsOf("curl").filter((call) => call.includes(controlPlane.apiName!));
    expect(asked.join()).toMatch(/\/readyz.*--resolve.*\/api\/v1\/nodes\//);
    for (const call of asked) {
      expect(call).toContain("--cacert /etc/kubernetes/pki/ca.crt");
      expect(call).toContain("--noproxy *");
      if (call.includes("/apis/") || call.includes("/api/")) {
        expect(call).toContain("--cert /var/lib/kubelet/pki/kubelet-client-current.pem");
      }
    }
  });

  it("has used a credential of its own making that ends soon", () => {
    expect(machine.callsOf("kubeadm")).toContain(
      "kubeconfig user --config /etc/zoned/kubeadm-init.yaml --client-name zoned:zoned-test-cp-2 --validity-period 2h " +
        "--org kubeadm:cluster-admins,system:bootstrappers:kubeadm:default-node-token",
    );
  });

  it("means itself by the API's name from then on, and not before", () => {
    expect(machine.read("/hosts-at-join")).not.toContain("# zoned");
    expect(machine.read("/etc/hosts")).toContain(hostsEntry);
  });

  it("has asked the others' etcd, and not the one that it may be running itself", () => {
    const joined = machine.calls.findIndex(([name, verb]) => name === "kubeadm" && verb === "join");
    const asked = machine.calls
      .slice(0, joined)
      .map((words) => words.join(" "))
      .filter((call) => call.includes("/v3/cluster/"));

    expect(asked.length).toBeGreaterThan(0);
    expect(asked.filter((call) => !call.includes("https://172.16.1.4:2379/"))).toEqual([]);
  });

  it("has let no upgrade in the background begin meanwhile", () => {
    expect(machine.callsOf("first-boot")).toEqual([
      "pause_upgrades",
      "remove_package_source",
      "resume_upgrades",
    ]);
  });

  it("has what renews its certificates and awaits events of Azure: the units, and this script without its payload", () => {
    expect(machine.callsOf("systemctl")).toEqual([
      "daemon-reload",
      "enable --now zoned-certificates.timer",
      "daemon-reload",
      "enable zoned-maintenance.service",
      "restart zoned-maintenance.service",
    ]);
    expect(machine.read("/opt/zoned/bootstrap.sh")).toBe(bootstrapText());
    expect(machine.read("/var/lib/zoned/variables")).toContain(`machine=${controlPlane.machine}\n`);
    expect(machine.callsOf("renewal")).toEqual(["report"]);
  });

  it("has no secret left that only the join needed, nor has the script", async () => {
    expect(machine.has("/etc/zoned/discovery.conf")).toBe(false);
    expect(machine.has("/etc/zoned/kubeadm-init.yaml")).toBe(false);
    expect(machine.read("/etc/kubernetes/pki/ca.key")).toBe(caKey);
    expect(machine.read(script)).toBe(bootstrapText());
    expect((await bootstrap(machine)).stderr).toContain("run `pulumi up` for more");
  });
});

describe("a control plane behind an internal balancer, which sends nothing back to its sender", () => {
  const behind = { ...controlPlane, isApiPrivate: true };
  const pod = (name: string, more: object) => ({
    metadata: { name, namespace: "kube-system" },
    ...more,
  });
  const onHost = JSON.stringify({
    items: [
      pod("kube-proxy-abcde", { spec: { hostNetwork: true } }),
      pod("coredns-abcde", { spec: {} }),
      {
        metadata: {
          ...pod(`etcd-${controlPlane.machine}`, {}).metadata,
          annotations: { "kubernetes.io/config.mirror": "hash" },
        },
        spec: { hostNetwork: true },
      },
    ],
  });
  const join = () => {
    const machine = machineIn({}, behind);
    const answering = `*:172.16.1.4\\ *) exit "$(cat "$root/peer" 2>/dev/null || echo 0)" ;;`;
    machine.program(
      "curl",
      programs.curl.replace("*--resolve*)", `${answering}\n    *--resolve*)`),
    );
    machine.program(
      "kubectl",
      programs.kubectl.replace(
        `*"get pods"*)`,
        `*spec.nodeName*) echo '${onHost}' ;;\n    *"get pods"*)`,
      ),
    );
    return machine;
  };

  describe("when it has joined", () => {
    let machine: FakeMachine;
    beforeAll(async () => {
      machine = join();
      expect((await bootstrap(machine)).code).toBe(0);
    });

    it("has meant another control plane by the API's name before, and means itself", () => {
      const { apiName } = controlPlane;
      expect(machine.read("/hosts-at-join")).toContain(`172.16.1.4 ${apiName} # zoned`);
      expect(machine.read("/etc/hosts")).toContain(hostsEntry);
      expect(machine.read("/etc/hosts")).not.toContain("172.16.1.4");
    });

    const deleted = () =>
      machine
        .callsOf("kubectl")
        .filter((call) => call.includes("delete pod"))
        .map((call) => /delete pod (\S+)/.exec(call)![1]);

    it("has started the pods on its network anew, whose /etc/hosts are those of before, and no others", () => {
      expect(deleted()).toEqual(["kube-proxy-abcde"]);
    });

    it("leaves them alone when it is configured otherwise", async () => {
      machine.forgetCalls();
      ship(machine, { ...behind, configuration: "later" });

      expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });

      expect(machine.callsOf("kubeadm").join()).toContain("upgrade node --config");
      expect(deleted()).toEqual([]);
    });
  });

  it("does not join while no other API server answers it, and says who was asked", async () => {
    const machine = join();
    machine.write("/peer", "28");

    const { code, stdout } = await runStep(machine, "join");

    expect(code).not.toBe(0);
    expect(stdout).toMatch(/no API server of another control plane answers.*172\.16\.1\.4/);
    expect(deeds(machine)).toEqual([]);
  });
});
