import { Payload } from "../../../../components/machine/payload";
import {
  asInitial,
  base64,
  bootstrap,
  bootstrapDespite,
  controlPlane,
  deeds,
  endedWell,
  machineIn,
  programs,
  runStep,
  ship,
} from "../../../support/bootstrapped-machine";
import { FakeMachine } from "../../../support/fake-machine";
import { Outcome } from "../../../support/tools";

describe("a snapshot of etcd", () => {
  /** Writes down what it is asked for; a restored etcd has its data in its folder. */
  const snapshotScript = `#!/bin/bash
    root=$ZONED_ROOT
    printf '%s\\n' "$*" >>"$root/asked"
    case $1 in
      fetch) [[ ! -e $root/refuses ]] || { echo "fetching" >&2; echo "there is no snapshot" >&2; exit 1; }
        echo data >"$3" ;;
      etcdutl) cp "$root/programs/etcdutl" "$2" ;;
      save) [[ ! -e $root/refuses ]] || { echo "no container of etcd runs" >&2; exit 1; } ;;
    esac`;
  const snapshotFile = {
    path: "/opt/zoned/etcd-snapshot.sh",
    mode: "0700",
    content: snapshotScript,
  };
  const timer = {
    path: "/etc/systemd/system/zoned-etcd-snapshot.timer",
    mode: "0644",
    content: "",
  };
  const service = { ...timer, path: "/etc/systemd/system/zoned-etcd-snapshot.service" };
  const environment = { ...timer, path: "/opt/zoned/etcd-snapshot.env" };
  const saved = [snapshotFile, environment, timer, service];
  const saving: Payload = {
    ...controlPlane,
    tasks: ["snapshots"],
    files: [...controlPlane.files, ...saved],
  };
  const restoring: Payload = { ...saving, restoredFrom: "latest" };

  const restoredIn = (payload = restoring) => {
    const machine = machineIn({ ...asInitial, api: "silent", node: true }, payload);
    machine.program("systemctl", "");
    machine.program(
      "etcdutl",
      `case $* in *"snapshot status"*) echo '{"revision": 51234}' ;; *) mkdir -p "$root/var/lib/etcd/member" ;; esac`,
    );
    machine.write("/etc/cni/net.d/10-it.conflist", "");
    return machine;
  };
  describe("that the initial control plane restores", () => {
    let machine: FakeMachine;
    let outcome: Outcome;
    beforeAll(async () => {
      machine = restoredIn();
      outcome = await bootstrap(machine);
    });

    it("is what it initializes with", () => {
      expect(outcome).toMatchObject({ code: 0, stderr: "" });
      expect(outcome.stdout).toContain(" bootstrap: snapshot: done after");
      expect(machine.read("/asked")).toMatch(/^fetch latest \S+\netcdutl \S+\n$/);
      const [, restore = ""] = machine.callsOf("etcdutl");
      expect(restore).toMatch(
        /^snapshot restore \S+ --data-dir \/var\/lib\/etcd --name zoned-test-cp-2 --initial-cluster zoned-test-cp-2=https:\/\/172\.16\.2\.5:2380 --initial-advertise-peer-urls https:\/\/172\.16\.2\.5:2380 --initial-cluster-token zoned-\S+ --mark-compacted --bump-revision \d+$/,
      );
      expect(machine.callsOf("kubeadm").find((call) => call.startsWith("init --"))).toBe(
        "init --config /etc/zoned/kubeadm-init.yaml --skip-token-print --skip-phases preflight,addon/kube-proxy",
      );
      expect(machine.read("/var/lib/zoned/joined")).toBe("joined\n");
      // It holds every Secret.
      for (const file of ["snapshot.db", "etcdutl"])
        expect([file, machine.has(`/var/lib/zoned/${file}`)]).toEqual([file, false]);
    });

    // kubeadm does not start where one check is to be ignored beside `all`, which the settings may name.
    it("is not there yet when kubeadm checks the machine, so that no check has to be ignored", () => {
      const order = machine.calls
        .map((words) => words.join(" ").replaceAll(machine.root, ""))
        .filter((call) =>
          /^(etcdutl snapshot restore|kubeadm init (phase preflight|--))/.test(call),
        )
        .map((call) => call.split(" ").slice(0, 3).join(" "));

      expect(order).toEqual([
        "kubeadm init phase",
        "etcdutl snapshot restore",
        "kubeadm init --config",
      ]);
    });

    it("knows control planes that are gone, which are forgotten while no kubelet speaks for this one", () => {
      const order = machine.calls
        .map((words) => words.join(" ").replaceAll(machine.root, ""))
        .filter((call) =>
          /delete|(stop|start) kubelet|^kubeadm init .*(--skip-token|mark)/.test(call),
        )
        .map((call) => call.replace(/--kubeconfig \S+ --request-timeout 30s /, ""));
      expect(order).toEqual([
        expect.stringMatching(/^kubeadm init --config/),
        "systemctl stop kubelet",
        ...["zoned-test-cp-1", "zoned-test-cp-2"].flatMap((name) => [
          `kubectl delete node ${name} --ignore-not-found --wait=false`,
          `kubectl delete pods --all-namespaces --field-selector spec.nodeName=${name} --grace-period 0 --force --wait=false`,
        ]),
        "systemctl start kubelet",
        "kubeadm init phase mark-control-plane --config /etc/zoned/kubeadm-init.yaml",
      ]);
    });
  });

  // etcdutl adds to the snapshot's own revision.
  it.each([
    ["from before another one that was restored", 51234],
    ["of a cluster that was restored an hour ago", (Date.now() - 3_600_000) * 1000],
  ])("has the cluster go on past all revisions that anybody has seen (%s)", async (_, revision) => {
    const machine = restoredIn();
    machine.program(
      "etcdutl",
      `[[ $* != *"snapshot status"* ]] || echo '{"revision": ${revision}}'`,
    );
    const begun = Math.floor(Date.now() / 1000);

    await runStep(machine, "fetch_snapshot");
    expect((await runStep(machine, "initialize")).code).toBe(0);

    const [, added] = /--bump-revision (\d+)$/m.exec(machine.callsOf("etcdutl").join("\n")) ?? [];
    // Ahead of an etcd of another time that writes a million times a second.
    expect(revision + Number(added)).toBeGreaterThanOrEqual(begun * 1e6);
    expect(revision + Number(added)).toBeLessThanOrEqual(Date.now() * 1e3);
  });

  // kubeadm has what it writes trust the first CA alone.
  it("has the kubelet and who is to join trust every CA where it is restored amid a change of the CAs", async () => {
    const machine = restoredIn({ ...restoring, tasks: ["snapshots", "cas"] });
    const conf = "/etc/kubernetes/kubelet.conf";
    const first = "certificate-authority-data: Zmlyc3Q=";
    const all = `certificate-authority-data: ${base64("the CA")}`;
    machine.program(
      "kubeadm",
      programs.kubeadm.replace(
        "init*)",
        `init*) mkdir -p "$root/etc/kubernetes"; echo "${first}" >"$root${conf}";`,
      ),
    );
    machine.program(
      "kubectl",
      `case $* in *"configmap cluster-info"*) echo '${JSON.stringify({ data: { kubeconfig: first } })}'; exit ;;
        *"--namespace kube-public replace"*) cat >"$root/published"; exit ;; esac
      ${programs.kubectl}`,
    );
    machine.program(
      "systemctl",
      `[[ $* != "start kubelet" ]] || cp "$root${conf}" "$root/at-start"`,
    );

    await runStep(machine, "fetch_snapshot");
    expect((await runStep(machine, "initialize")).code).toBe(0);

    expect(machine.read("/at-start")).toBe(`${all}\n`);
    expect(JSON.parse(machine.read("/published"))).toEqual({ data: { kubeconfig: all } });
    // The snapshot has those of its time.
    expect(machine.callsOf("kubectl")).toContainEqual(
      expect.stringContaining("patch configmap extension-apiserver-authentication"),
    );
  });

  it("is asked for once more where it did not come, and so is its timer", async () => {
    const machine = restoredIn();

    expect(
      await bootstrapDespite(machine, { fetch_snapshot: 1, initialize: 1, schedule_snapshots: 1 }),
    ).toEqual(endedWell);
  });

  it("is not restored where it cannot be fetched: the message says why, and nothing was begun", async () => {
    const machine = restoredIn();
    machine.write("/refuses", "");

    const outcome = await bootstrap(machine);

    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toMatch(
      /\nthere is no snapshot\nstep "snapshot" failed with exit code 1\n$/,
    );
    expect(deeds(machine)).toEqual([]);
  });

  it("is not restored where etcdutl cannot read it", async () => {
    const machine = restoredIn();
    machine.program("etcdutl", '[[ $* != *"snapshot status"* ]]');

    const { code, stdout } = await runStep(machine, "fetch_snapshot");

    expect(code).toBe(1);
    expect(stdout).toMatch(/etcdutl cannot read snapshot latest: name an older one/);
  });

  it.each([
    ["the initialization", "kubeadm", '[[ $* != "init --"*'],
    ["forgetting old control planes", "kubectl", '[[ $* != *"delete node"*'],
  ])("is restored again, from its beginning, where %s has ended half-way", async (...row) => {
    const [, program, unless] = row;
    const machine = restoredIn();
    const broken = `${unless} || -e $root/tried ]] || { touch "$root/tried"; exit 7; }`;
    machine.program(program, `${broken}\n${programs[program as "kubeadm"]}`);

    await runStep(machine, "fetch_snapshot");
    expect((await runStep(machine, "initialize")).code).toBe(7);
    expect((await runStep(machine, "initialize")).code).toBe(0);

    expect(deeds(machine).filter((deed) => !deed.startsWith("delete"))).toEqual([
      ...["init", "reset", "init"],
    ]);
    expect(machine.callsOf("etcdutl").filter((call) => call.includes("restore"))).toHaveLength(2);
  });

  it("is not restored where an API answers", async () => {
    const machine = machineIn(asInitial, restoring);
    await runStep(machine, "decide");

    expect(machine.read("/run/zoned/decision")).toBe("join\n");
  });

  it("is not restored, but saved, by another control plane, by a timer that comes with the payload, and goes when it does not come any more", async () => {
    const machine = machineIn({}, restoring);
    const units = () =>
      machine.callsOf("systemctl").filter((call) => /reload|etcd-snapshot/.test(call));
    // Those of the renewal's and the maintenance's units come after it.
    const others = ["daemon-reload", "daemon-reload"];
    expect((await bootstrap(machine)).code).toBe(0);
    expect(machine.has("/asked")).toBe(false);
    expect(deeds(machine)).toEqual(["join"]);
    expect(units()).toEqual([
      "daemon-reload",
      "enable zoned-etcd-snapshot.timer",
      "restart zoned-etcd-snapshot.timer",
      ...others,
    ]);

    machine.forgetCalls();
    ship(machine, controlPlane);
    expect((await bootstrap(machine)).code).toBe(0);
    expect(units()).toEqual([
      "disable --now zoned-etcd-snapshot.timer",
      "daemon-reload",
      ...others,
    ]);
    expect(saved.filter(({ path }) => machine.has(path))).toEqual([]);
  });
});
