import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

import { Payload } from "../../../../components/machine/payload";
import {
  allWell,
  base64,
  bootstrap,
  bootstrapDespite,
  clusterWith,
  controlPlane,
  endedWell,
  kubeletPods,
  lastLine,
  leaseOf,
  listedNode,
  machineIn,
  peer,
  runStep,
  script,
  ship,
  worker,
} from "../../../support/bootstrapped-machine";
import { FakeMachine } from "../../../support/fake-machine";

describe("an upgrade", () => {
  const next = { kubernetesVersion: "9.9.10", configuration: "later" };

  /** A member whose node has these pods, with what the script does to machine and cluster in turn. */
  function memberIn(payload: Payload, pods: readonly object[] = []) {
    const machine = machineIn({}, payload);
    machine.write("/var/lib/zoned/joined", "joined\n");
    machine.write("/var/lib/zoned/configuration", "now\n");
    machine.write("/var/lib/zoned/room", "as before\n");
    machine.write("/var/lib/zoned/boot", "boot 1\n");
    machine.write("/proc/sys/kernel/random/boot_id", "boot 1\n");
    machine.write("/etc/cni/net.d/it.conf", "");
    machine.write("/etc/kubernetes/kubelet.conf", "    certificate-authority-data: b2xk\n");
    machine.write("/etc/kubernetes/pki/ca.crt", "the CA before");
    machine.write("/pods", JSON.stringify({ items: pods }));
    machine.write("/wanted", payload.kubernetesVersion);
    machine.write("/version-of-kubeadm", "9.9.9");
    machine.write("/version-of-kubelet", "9.9.9");
    machine.write(
      "/opt/zoned/first-boot.sh",
      `#!/bin/bash\n[[ $1 != *_upgrades && $1 != remove_* ]] || exit 0\necho "first-boot $1" >>"${machine.root}/order"
      [[ $1 != install_* ]] || cp "${machine.root}"/{wanted,version-of-"\${1#install_}"}`,
      0o700,
    );
    machine.program("kubelet", 'echo "Kubernetes v$(cat "$root/version-of-kubelet")"');
    machine.program(
      "kubeadm",
      `case $* in version*) echo "v$(cat "$root/version-of-kubeadm")" ;; *) echo "kubeadm $1 $2 $3" >>"$root/order" ;; esac`,
    );
    machine.program(
      "kubectl",
      'case $* in *jsonpath*) cat "$root/annotation" ;; *cluster-info*) ;; *annotate*) echo annotate >>"$root/order"; [[ $* == *configuration-* ]] && : >"$root/annotation" || { last=${*: -1}; echo "${last#*=}" >"$root/annotation"; } ;; *"replace --filename -"*) cat >/dev/null ;; *) cat "$root/objects" ;; esac',
    );
    machine.write("/annotation", "");
    machine.write(
      "/node",
      JSON.stringify({
        metadata: { annotations: {} },
        spec: {},
        status: { conditions: [{ type: "Ready", status: "True" }] },
      }),
    );
    machine.write("/objects", JSON.stringify({ items: allWell }));
    machine.program(
      "curl",
      `case $* in
        *zoned-maintenance*) cat "$root/turns" || printf '\\n404' ;;
        *eviction*) echo "evict" >>"$root/order"; echo '{"items":[]}' >"$root/pods"; printf '{}\\n201' ;;
        *'"unschedulable": true'*) echo cordon >>"$root/order"; sed -i 's/"annotations":{}/"annotations":{"zoned\\/drained":"unschedulable"}/' "$root/node" ;;
        *PATCH*) echo uncordon >>"$root/order"; sed -i 's/"annotations":{[^}]*}/"annotations":{}/' "$root/node" ;;
        *"/api/v1/pods"*) cat "$root/pods" ;;
        *"/leases/"*) cat "$root/lease" ;;
        *"/api/v1/nodes/"*) cat "$root/node" ;;
        *10250/pods*) echo kubelet >>"$root/order"; { cat "$root/kubelet-pods" || echo '${kubeletPods()}'; rm -f "$root/kubelet-pods"; } 2>/dev/null ;;
        *2379/health*) echo '{"health":"true"}' ;;
        *maintenance/alarm*) echo '{}' ;;
        *member/list*) echo '${JSON.stringify({ members: [peer] })}' ;;
      esac`,
    );
    return machine;
  }

  const order = (machine: FakeMachine) => machine.read("/order").trim().split("\n");

  /** Has one of its programs do this before, which may end it. */
  const first = (machine: FakeMachine, program: string, does: string) =>
    machine.program(
      program,
      `${does}\n${machine.read(`/programs/${program}`).split("\n").slice(3).join("\n")}`,
    );
  /** Gives its Node this mark of a drain. */
  const markNode = (machine: FakeMachine, drained: string): void => {
    const node = JSON.parse(machine.read("/node"));
    node.metadata.annotations = { "zoned/drained": drained };
    machine.write("/node", JSON.stringify(node));
  };
  const pod = (name: string, owner?: string) => ({
    metadata: { namespace: "default", name, ...(owner && { ownerReferences: [{ kind: owner }] }) },
    status: { phase: "Running" },
  });

  it.each([1, 2, 3])(
    "cordons a worker also where answer %i of the API is lost, and not one that somebody has cordoned",
    async (lost) => {
      const scenes = await Promise.all(
        [false, true].map(async (unschedulable) => {
          const machine = memberIn({ ...worker, ...next });
          machine.write(
            "/node",
            JSON.stringify({ metadata: { annotations: {} }, spec: { unschedulable } }),
          );
          machine.write("/order", "");
          first(
            machine,
            "curl",
            `if [[ $* == *"/api/v1/nodes/"* ]]; then
            echo >>"$root/asked"
            (($(wc --lines <"$root/asked") != ${lost})) || exit 56
          fi`,
          );
          const { code } = await runStep(machine, "drain");
          return [code, machine.read("/order")];
        }),
      );

      expect(scenes).toEqual([
        [0, "cordon\n"],
        [0, ""],
      ]);
    },
  );

  it("drains a worker before it is upgraded, leaves pods that would come back or have ended, and uncordons it after", async () => {
    const mirrored = { annotations: { "kubernetes.io/config.mirror": "hash" } };
    const machine = memberIn({ ...worker, ...next }, [
      pod("proxy", "DaemonSet"),
      { ...pod("etcd"), metadata: { ...pod("etcd").metadata, ...mirrored } },
      { ...pod("job", "Job"), status: { phase: "Succeeded" } },
      { ...pod("lost"), status: { phase: "Failed" } },
      pod("web", "ReplicaSet"),
    ]);

    expect((await bootstrap(machine)).code).toBe(0);
    const asked = machine.callsOf("curl").filter((call) => call.includes("pods"));
    expect(asked.map((call) => /:6443(\S+)/.exec(call)?.[1])).toEqual([
      "/api/v1/pods?fieldSelector=spec.nodeName%3Dzoned-test-workers-1",
      "/api/v1/namespaces/default/pods/web/eviction",
      "/api/v1/pods?fieldSelector=spec.nodeName%3Dzoned-test-workers-1",
    ]);
    expect(order(machine)).toEqual([
      "first-boot add_package_source",
      "first-boot install_kubeadm",
      "first-boot pull_images",
      "cordon",
      "evict",
      "kubeadm upgrade node --config",
      "first-boot install_kubelet",
      "kubeadm init phase kubelet-start",
      "uncordon",
    ]);
    expect(machine.read("/var/lib/zoned/configuration")).toBe("later\n");
    // Its own limit comes first, which uncordons and says why.
    const limits = machine.callsOf("timeout").filter((call) => call.endsWith(" drain"));
    expect(limits.map((call) => Number(call.split(" ")[1]))).toEqual([45 * 60]);
  });

  it.each([
    ["that it is given", 0, 7200, "give them longer (zoned:drainMinutes)"],
    ["that the step has for it", 240, 1799, `kubectl drain ${worker.machine} --ignore-daemonsets`],
  ])(
    "takes pods again when they are still there after the time %s, gives its turn back, and says what holds them",
    async (_, drainMinutes, seconds, way) => {
      const machine = memberIn({ ...worker, ...next, drainMinutes }, [pod("web")]);
      const causes = [{ message: "The disruption budget web needs 1 healthy pods" }];
      const held = JSON.stringify({ message: "Cannot evict pod.", details: { causes } });
      first(machine, "curl", `[[ $* != */eviction* ]] || { printf '%s\\n429' '${held}'; exit; }`);
      const data = { [worker.machine]: "update 2999-01-01T00:00:00Z" };
      machine.write("/turns", `${JSON.stringify({ metadata: {}, data })}\n200`);
      machine.program("sleep", "exec /bin/sleep 1.1");
      const deadline = `${Math.floor(Date.now() / 1000) + seconds}`;

      const { code, stdout } = await runStep(machine, "drain", { ZONED_DEADLINE: deadline });

      expect(code).toBe(1);
      expect(stdout).toMatch(/after 0 minutes pods are still on this machine/);
      expect(stdout).toContain(way);
      expect(stdout).toContain(`default/web: Cannot evict pod. ${causes[0]!.message}`);
      expect(order(machine)).toContain("uncordon");
      expect(machine.callsOf("curl").join()).toContain(`"${worker.machine}":null`);
    },
  );

  const minutesAgo = (minutes: number) =>
    `${new Date(Date.now() - minutes * 60_000).toISOString().slice(0, 19)}Z`;
  it.each([
    ["goes on without pods' end where the kubelet is silent", "Unknown", 1, 0],
    ["goes on without it where the kubelet was not Ready for five minutes", "False", 6, 0],
    ["waits for it where the kubelet is not Ready for a moment", "False", 4, 1],
  ])("%s", async (_, status, minutes, expected) => {
    const machine = memberIn({ ...worker, ...next, drainMinutes: 0 }, [pod("web")]);
    const ready = { type: "Ready", status, lastTransitionTime: minutesAgo(minutes) };
    const node = { metadata: { annotations: {} }, spec: {}, status: { conditions: [ready] } };
    machine.write("/node", JSON.stringify(node));
    first(machine, "curl", `[[ $* != */eviction* ]] || { printf '{}\\n201'; exit; }`);
    machine.program("sleep", "exec /bin/sleep 1.1");

    expect((await runStep(machine, "drain")).code).toBe(expected);
  });

  it.each([
    ["drained", next, "cordon"],
    ["configured anew", { configuration: "later" }, "kubeadm upgrade node --config"],
  ])(
    "has a machine %s in its turn, for which it waits in a step of its own, and says for whom",
    async (_, change, first) => {
      const machine = memberIn({ ...worker, ...change }, [pod("web")]);
      const turns = (data: object) => `${JSON.stringify({ metadata: {}, data })}\n200`;
      machine.write("/turns", turns({ "zoned-test-workers-2": "Redeploy 2999-01-01T00:00:00Z" }));
      machine.program("sleep", `echo waits >>"$root/order"; echo -n '${turns({})}' >"$root/turns"`);

      expect((await bootstrap(machine)).code).toBe(0);

      expect(machine.read("/var/log/zoned.log")).toMatch(
        /turn: begins\n.*zoned-test-workers-2 is down for Redeploy, at most until 2999.*\n.*turn: done/,
      );
      const done = order(machine).filter((line) => !line.startsWith("first-boot"));
      expect(done.slice(0, 2)).toEqual(["waits", first]);
      // Once more when a drain may have used its time up.
      const noted = machine.callsOf("curl").filter((call) => call.includes('"update 20'));
      expect(noted).toHaveLength(2);
    },
  );

  it.each([
    ["for drainMinutes", 15, 7200, 16 * 60],
    ["no longer than what follows leaves time for", 240, 3600, 31 * 60],
    ["long enough for one look", 15, 1200, 60],
  ])("waits for its turn %s", async (_, drainMinutes, left, seconds) => {
    const machine = memberIn({ ...worker, ...next, drainMinutes });
    machine.write(
      "/turns",
      `${JSON.stringify({ data: { it: "Reboot 2999-01-01T00:00:00Z" } })}\n200`,
    );
    const deadline = `${Math.floor(Date.now() / 1000) + left}`;

    const outcome = await bootstrap(machine, { ZONED_DEADLINE: deadline, HANGS: "*" });

    expect(outcome.stderr).toMatch(
      /only one may be down: it is down for Reboot.*\nstep "turn" failed with exit code 124\n$/,
    );
    expect(order(machine).join()).not.toMatch(/cordon|upgrade/);
    const [limit] = machine.callsOf("timeout").filter((call) => call.endsWith(" await_turn"));
    expect(Number(limit!.split(" ")[1])).toBeGreaterThan(seconds - 60);
    expect(Number(limit!.split(" ")[1])).toBeLessThanOrEqual(seconds);
  });

  it.each(["kubeadm", "kubelet"])(
    "goes no further where %s is of another version after its installation",
    async (program) => {
      const machine = memberIn({ ...worker, ...next });
      first(machine, program, `[[ $* != *version* ]] || { echo "v9.9.9 v9.9.9"; exit; }`);

      const { code, stdout } = await runStep(machine, `upgrade_${program}`);

      expect(code).toBe(1);
      expect(stdout).toMatch(/ is of version v9\.9\.9 .*v9\.9\.10/);
      expect(order(machine).at(-1)).toBe(`first-boot install_${program}`);
    },
  );

  it("leaves a node cordoned that somebody else has cordoned", async () => {
    const machine = memberIn({ ...worker, ...next }, [pod("web")]);
    const status = { conditions: [{ type: "Ready", status: "True" }] };
    machine.write("/node", JSON.stringify({ metadata: {}, spec: { unschedulable: true }, status }));

    expect((await bootstrap(machine)).code).toBe(0);

    expect(order(machine)).toContain("evict");
    expect(order(machine).join()).not.toContain("cordon");
  });

  const label = "node.kubernetes.io/exclude-from-external-load-balancers";
  const nothing = { annotations: { "zoned/drained": null } };
  it.each([
    [
      "unschedulable excluded upgrade",
      { metadata: { ...nothing, labels: { [label]: null } }, spec: { unschedulable: null } },
    ],
    ["excluded", { metadata: { ...nothing, labels: { [label]: null } } }],
    ["unschedulable", { metadata: nothing, spec: { unschedulable: null } }],
    ["", { metadata: nothing }],
  ])("takes back of a drain what the mark says to be its own: '%s'", async (mark, patch) => {
    const machine = memberIn(worker);
    const metadata = { annotations: { "zoned/drained": mark } };
    machine.write("/node", JSON.stringify({ metadata, spec: { unschedulable: true } }));

    expect((await runStep(machine, "undo_drain")).code).toBe(0);

    const [call = ""] = machine.callsOf("curl").filter((one) => one.includes("PATCH"));
    expect(JSON.parse(/--data (\{.*\})/.exec(call)![1]!)).toEqual(patch);
  });

  it("remembers what else is to be taken back of a drain that somebody has ended by hand", async () => {
    const machine = memberIn({ ...worker, ...next });
    markNode(machine, "unschedulable excluded");

    expect((await runStep(machine, "drain")).code).toBe(0);

    const [call = ""] = machine.callsOf("curl").filter((one) => one.includes("PATCH"));
    expect(call).toContain('{"zoned/drained": "unschedulable excluded unschedulable"}');
  });

  it("undoes at its end what an update has drained before it, also where it changes nothing else", async () => {
    const machine = memberIn(worker);
    machine.write("/order", "");
    markNode(machine, "unschedulable excluded");

    expect((await bootstrap(machine)).code).toBe(0);

    expect(order(machine)).toEqual(["uncordon"]);
  });

  it.each([
    ["lets pods on a machine again that it has not touched", {}, ["uncordon"]],
    ["leaves one drained that is half done", { "/var/lib/zoned/touched": "" }, []],
    ["leaves one drained that was restarted", { "/var/lib/zoned/boot": "boot 0\n" }, []],
  ])("%s, when it fails", async (_, files, expected) => {
    const machine = memberIn({ ...worker, ...next });
    machine.write("/order", "");
    for (const [path, text] of Object.entries(files)) machine.write(path, text);
    markNode(machine, "unschedulable excluded upgrade");
    const data = { [worker.machine]: "update 2999-01-01T00:00:00Z" };
    machine.write("/turns", `${JSON.stringify({ metadata: {}, data })}\n200`);
    first(machine, "modprobe", "exit 1");

    const { code, stderr } = await bootstrap(machine);

    expect([code, stderr]).toEqual([1, expect.stringContaining('step "kernel modules" failed')]);
    expect(order(machine).filter((line) => line === "uncordon")).toEqual(expected);
    const gives = machine.callsOf("curl").join().includes(`"${worker.machine}":null`);
    expect(gives).toBe(expected.length > 0);
  });

  describe("of a control plane", () => {
    const saving = { ...controlPlane, ...next, tasks: ["snapshots" as const] };
    const certificate = "/etc/kubernetes/pki/apiserver.crt";
    const savingIn = (code = 0, peerIs = "True") => {
      const machine = memberIn(saving);
      machine.write("/order", "");
      machine.write(certificate, "of before");
      machine.write(
        "/opt/zoned/etcd-snapshot.sh",
        `#!/bin/bash\necho "snapshot $*" >>"${machine.root}/order"; echo "no space" >&2; exit ${code}\n`,
        0o700,
      );
      const items = clusterWith({ [peer.name]: listedNode(peer.name, peerIs) });
      machine.write("/objects", JSON.stringify({ items }));
      return machine;
    };

    it("saves etcd first, and keeps the CAs and the API server's certificate", async () => {
      const machine = savingIn();

      expect((await bootstrap(machine)).code).toBe(0);

      expect(order(machine)).toEqual([
        "first-boot add_package_source",
        "first-boot install_kubeadm",
        "first-boot pull_images",
        "snapshot save any",
        "cordon",
        "kubeadm init phase certs",
        "kubeadm upgrade node --config",
        "first-boot install_kubelet",
        "kubeadm init phase kubelet-start",
        "kubelet",
        "uncordon",
      ]);
      expect(machine.read(certificate)).toBe("of before");
      expect(machine.read("/etc/kubernetes/pki/ca.crt")).toBe("the CA before");
    });

    it("goes no further where etcd cannot be saved", async () => {
      const machine = savingIn(1);

      expect((await bootstrap(machine)).stderr).toMatch(/\nno space\nstep "snapshot" failed/);

      expect(order(machine).join()).not.toMatch(/cordon|upgrade/);
    });

    it.each([
      ["goes before the next one where the member is well", 0, ""],
      ["stays where the member is not well, which may need it", 22, "kubeadm-backup-etcd-1\n"],
    ])("a copy of etcd's data that a try has left %s", async (_, health, left) => {
      const machine = savingIn();
      machine.write("/etc/kubernetes/tmp/kubeadm-backup-etcd-1/etcd/member/wal/0.wal", "");
      first(machine, "curl", `[[ $* != *2381/health* ]] || exit ${health}`);
      first(
        machine,
        "kubeadm",
        `[[ $1 != upgrade ]] || ls "$root/etc/kubernetes/tmp" >"$root/left"`,
      );

      expect((await runStep(machine, "upgrade_control_plane")).code).toBe(0);

      expect(machine.read("/left")).toBe(left);
    });

    const withEtcd = (image: string) => {
      const machine = savingIn();
      const manifest = `  containers:\n  - name: etcd\n    image: ${image}\n    name: etcd\n`;
      machine.write("/etc/kubernetes/manifests/etcd.yaml", manifest);
      const wanted =
        "printf 'registry.k8s.io/%s\\n' kube-apiserver:v9.9.10 etcd:3.6.14-0 pause:3.10";
      first(machine, "kubeadm", `[[ $* != "config images list"* ]] || { ${wanted}; exit; }`);
      return machine;
    };

    it.each([
      ["registry.k8s.io/etcd:3.7.0-0", "3.7.0-0"],
      ["registry.k8s.io/etcd:3.6.14-1", "3.6.14-1"],
      ["gcr.io/etcd-development/etcd:v3.6.14@sha256:0123", "3.6.14"],
    ])(
      "is not begun where etcd is newer than kubeadm's, which it would leave (%s)",
      async (...row) => {
        const [image, version] = row;
        const machine = withEtcd(image);

        const { stderr } = await bootstrap(machine);

        expect(stderr).toMatch(
          new RegExp(
            `\netcd of this machine is ${version}, newer than the 3.6.14-0 of Kubernetes 9.9.10, and kubeadm leaves .*` +
              'pulumi config set kubernetesVersion.*\nstep "packages" failed',
          ),
        );
        expect(order(machine).join()).not.toMatch(/snapshot|cordon|upgrade/);
      },
    );

    it.each(["registry.k8s.io/etcd:3.6.14-0", "here:5000/etcd:v3.6.9@sha256:9123"])(
      "is begun where etcd is not newer than kubeadm's (%s)",
      async (image) => {
        const machine = withEtcd(image);

        expect((await runStep(machine, "upgrade_kubeadm")).code).toBe(0);

        expect(order(machine).at(-1)).toBe("first-boot pull_images");
      },
    );

    it("does not begin on one that is well while another one is not", async () => {
      const machine = savingIn(0, "False");

      expect(lastLine(await bootstrap(machine, { HANGS: "await_peers" }))).toBe(
        'step "other control planes" failed with exit code 124',
      );

      expect(machine.read("/order")).toBe("");
    });

    it("puts right one that is half done, whatever the others are", async () => {
      const machine = savingIn(0, "False");
      const isSound = 'grep --quiet kubelet-start "$root/order"';
      first(machine, "curl", `[[ $* != *2381/health* ]] || ${isSound} || exit 22`);

      await bootstrap(machine, { HANGS: "await_peers" });

      expect(order(machine)).toContain("kubeadm upgrade node --config");
    });
  });

  it("has kubeadm sign the API server's certificate anew where it lacks a name", async () => {
    const certificate = "/etc/kubernetes/pki/apiserver.crt";
    const machine = memberIn({ ...controlPlane, ...next });
    machine.write(certificate, "of before");
    first(
      machine,
      "kubeadm",
      `[[ $* != "init phase certs apiserver "* ]] || { [[ ! -e $root${certificate} ]] || exit 1; echo new >"$root${certificate}"; }`,
    );

    expect((await runStep(machine, "upgrade_control_plane")).code).toBe(0);

    expect(machine.read(certificate)).toBe("new\n");
  });

  it("fetches images also where an earlier try got no further than kubeadm", async () => {
    const machine = memberIn({ ...worker, ...next });
    machine.write("/version-of-kubeadm", "9.9.10");

    expect((await runStep(machine, "upgrade_kubeadm")).code).toBe(0);

    expect(order(machine)).toEqual(["first-boot pull_images"]);
  });

  it("gives the cluster its configuration once, by the first control plane, and gives it back where that was killed and the change is taken back", async () => {
    const before = { ...controlPlane, clusterConfiguration: "of all" };
    const machine = memberIn({ ...before, ...next, clusterConfiguration: "of the next" });
    machine.write("/annotation", "of all");
    const upgrade = async () => {
      machine.write("/order", "");
      const { code } = await runStep(machine, "upgrade_control_plane");
      return [code, ...order(machine).filter((line) => !line.includes("certs"))];
    };
    const given = ["annotate", "kubeadm init phase upload-config", "kubeadm upgrade apply --yes"];
    const killed = '{ touch "$root/killed"; exit 137; }';
    first(machine, "kubeadm", `[[ $* != "upgrade apply"* || -e $root/killed ]] || ${killed}`);

    expect(await upgrade()).toEqual([137, ...given.slice(0, 2)]);
    ship(machine, before);
    expect(await upgrade()).toEqual([0, ...given, "annotate"]);
    expect(machine.read("/annotation")).toBe("of all\n");
    expect(await upgrade()).toEqual([0, "kubeadm upgrade node --config"]);
  });

  it.each([
    ["has not yet read their manifests", '{"items":[]}'],
    ["starts one of them anew", kubeletPods("etcd")],
  ])("waits for the static pods while the upgraded kubelet %s", async (_, pods) => {
    const machine = memberIn({ ...controlPlane, ...next });
    machine.write("/kubelet-pods", pods);

    const { code, stdout } = await runStep(machine, "await_static_pods");

    expect(code).toBe(0);
    expect(order(machine)).toEqual(["kubelet", "kubelet"]);
    expect(stdout).toContain(`not Ready for the kubelet: etcd-${controlPlane.machine}`);
    // By the certificate that kubelets take from API servers, and verified by the name in their own.
    const asked = machine.callsOf("curl").find((call) => call.includes(":10250/pods"));
    expect(asked).toContain(
      "--noproxy * --cacert /etc/kubernetes/pki/ca.crt --cert /etc/kubernetes/pki/apiserver-kubelet-client.crt " +
        "--key /etc/kubernetes/pki/apiserver-kubelet-client.key " +
        "--resolve zoned-test-cp-2:10250:127.0.0.1 https://zoned-test-cp-2:10250/pods",
    );
  });

  it.each([
    ["ends when the API server has loaded the keys that it brought", "/etc/zoned/encryption", 2],
    ["does not wait for keys that are the operator's own", "/etc/kubernetes/pki", 0],
  ])("%s", async (_, folder, asked) => {
    const path = "/etc/zoned/encryption/secrets.yaml";
    const files = [...controlPlane.files, { path, mode: "0600", content: "other keys" }];
    const machine = memberIn({ ...controlPlane, ...next, files });
    machine.write(path, "keys");
    machine.write(
      "/etc/kubernetes/manifests/kube-apiserver.yaml",
      `--encryption-provider-config=${folder}/secrets.yaml`,
    );
    const digest = (text: string) => createHash("sha256").update(text).digest("hex");
    const metric = (text: string) =>
      `apiserver_encryption_config_controller_last_config_info{apiserver_id_hash="sha256:1",hash="sha256:${digest(text)}"} 1`;
    machine.write("/loaded", metric("keys"));
    first(
      machine,
      "kubectl",
      `case $* in */metrics*) cat "$root/loaded"; echo '${metric("other keys")}' >"$root/loaded"; exit ;; esac`,
    );

    const { code, stdout } = await runStep(machine, "await_control_plane");

    expect(code).toBe(0);
    expect(machine.read(path)).toBe("other keys");
    expect(machine.callsOf("kubectl")).toHaveLength(asked);
    expect(stdout).not.toContain("other keys");
  });

  it.each([
    ["a control plane", controlPlane],
    ["a worker", worker],
  ])(
    "has %s trust the CAs that come with it, before kubeadm runs and after",
    async (_, payload) => {
      const machine = memberIn({ ...payload, configuration: "later", tasks: ["cas"] });
      const conf = "/etc/kubernetes/kubelet.conf";
      const trusting = `    certificate-authority-data: ${base64("the CA")}\n`;
      machine.program(
        "kubeadm",
        `[[ $1 != version ]] || echo v9.9.9
      [[ $1 != upgrade ]] || { cp "$root${conf}" "$root/before"; echo "    certificate-authority-data: b25l" >"$root${conf}"; }`,
      );

      expect((await runStep(machine, "upgrade_member")).code).toBe(0);

      expect(machine.read("/etc/kubernetes/pki/ca.crt")).toBe("the CA");
      expect([machine.read("/before"), machine.read(conf)]).toEqual([trusting, trusting]);
    },
  );

  it("goes back to the one CA that comes with it where a change of CAs was taken back half-way", async () => {
    const pem = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n`;
    const machine = memberIn({ ...controlPlane, configuration: "later" });
    machine.write("/etc/kubernetes/pki/ca.crt", pem("the CA") + pem("another CA"));

    expect((await runStep(machine, "upgrade_member")).code).toBe(0);

    // The controller manager ends where it is to sign with several.
    expect(machine.read("/etc/kubernetes/pki/ca.crt")).toBe("the CA");
  });

  it("configures a worker's kubelet once where the machine has another size, and drains nothing for it", async () => {
    const machine = memberIn(worker, [pod("web")]);
    machine.write("/order", "");
    const reserved = "/etc/zoned/patches/kubeletconfiguration!reserved.json";
    machine.write(reserved, '{"kubeReserved": {"cpu": "100m", "memory": "975Mi"}}\n');
    machine.program("nproc", "echo 4");

    expect((await bootstrap(machine)).code).toBe(0);
    expect(order(machine)).toEqual([
      "kubeadm upgrade node --config",
      "kubeadm init phase kubelet-start",
    ]);
    const kubeReserved = { cpu: "140m", memory: "2048Mi" };
    expect(JSON.parse(machine.read(reserved))).toEqual({ kubeReserved });

    machine.write("/order", "");
    ship(machine, worker);
    expect((await bootstrap(machine)).code).toBe(0);
    expect(order(machine)).toEqual([""]);
  });

  it("is undone where it has failed half-way and its change is taken back, and keeps kubeadm's copy of etcd's data until then", async () => {
    const copy =
      "/etc/kubernetes/tmp/kubeadm-backup-etcd-2026-11-24-02-06-21/etcd/member/wal/0.wal";
    const machine = memberIn({ ...worker, ...next });
    machine.write(copy, "");
    machine.write("/broken", "");
    first(machine, "kubeadm", '[[ $* != *kubelet-start* || ! -e "$root/broken" ]] || exit 1');

    expect((await bootstrap(machine)).stderr).toContain('step "kubelet" failed');
    expect(machine.has(copy)).toBe(true);

    machine.removeFile("/broken");
    machine.write("/order", "");
    machine.write("/wanted", worker.kubernetesVersion);
    ship(machine, worker);
    expect((await bootstrap(machine)).code).toBe(0);
    expect(machine.has(copy)).toBe(false);
    // Both programs of the version before, its configuration, and pods may come again.
    expect(order(machine)).toEqual([
      "first-boot add_package_source",
      "first-boot install_kubeadm",
      "first-boot pull_images",
      "cordon",
      "kubeadm upgrade node --config",
      "first-boot install_kubelet",
      "kubeadm init phase kubelet-start",
      "uncordon",
    ]);
  });

  it("configures the kubelet of a control plane first where it does not report, without which kubeadm upgrades nothing", async () => {
    const machine = memberIn({ ...controlPlane, configuration: "later" });
    machine.write("/order", "");
    machine.write("/lease", leaseOf("2020-01-01T00:00:00.000000Z"));
    first(
      machine,
      "kubeadm",
      `[[ $* != *kubelet-start* ]] || echo '${leaseOf("2999-01-01T00:00:00.000000Z")}' >"$root/lease"`,
    );

    expect((await runStep(machine, "upgrade_member")).code).toBe(0);

    const done = order(machine).filter((line) => !line.includes("certs"));
    expect(done[0]).toBe("kubeadm init phase kubelet-start");
    expect(done[1]).toMatch(/^kubeadm upgrade|^annotate|upload-config/);
  });

  it("takes no patch that came with an earlier step, and not with this one", async () => {
    const patch = (name: string) => ({
      path: `/etc/zoned/patches/${name}`,
      mode: "0600",
      content: "",
    });
    const files = [...controlPlane.files, patch("corednsdeployment.yaml")];
    const machine = memberIn({ ...controlPlane, configuration: "later", files });
    machine.write(patch("etcd.yaml").path, "taken back");

    expect((await runStep(machine, "true")).code).toBe(0);

    expect(readdirSync(join(machine.root, "etc/zoned/patches"))).toEqual([
      "corednsdeployment.yaml",
    ]);
  });

  it("takes the keys of service accounts that come with it before kubeadm runs, which starts anew what reads them", async () => {
    const file = (name: string, content: string) => ({
      path: `/etc/kubernetes/pki/${name}`,
      mode: "0600",
      content,
    });
    const files = [
      ...controlPlane.files,
      file("sa.pub", "two public keys"),
      file("sa.key", "the new key"),
    ];
    const machine = memberIn({ ...controlPlane, configuration: "later", files });
    machine.write("/etc/kubernetes/pki/sa.key", "the key before");
    machine.program(
      "kubeadm",
      `[[ $1 != version ]] || echo v9.9.9
      [[ $1 != upgrade ]] || cat "$root"/etc/kubernetes/pki/sa.* >"$root/at-upgrade"`,
    );

    expect((await runStep(machine, "upgrade_member")).code).toBe(0);

    expect(machine.read("/at-upgrade")).toBe("the new keytwo public keys");
  });

  it("gives the kubelet a certificate of the CA that signs before it starts anew, readable by root alone", async () => {
    const certificate = "/var/lib/kubelet/pki/kubelet-client-current.pem";
    const machine = memberIn({ ...controlPlane, configuration: "later", tasks: ["cas"] });
    machine.write(certificate, "of the CA before\n");
    machine.program("openssl", `[[ $1 != verify ]] || grep --quiet new "$root${certificate}"`);
    machine.program(
      "kubeadm",
      `case $* in version*) echo v9.9.9 ;;
        "kubeconfig user"*) echo "    client-certificate-data: ${base64("new\n")}"; echo "    client-key-data: ${base64("key\n")}" ;;
        *kubelet-start*) cat "$root${certificate}" >"$root/at-start" ;;
      esac`,
    );

    for (const step of ["upgrade_member", "upgrade_kubelet"])
      expect((await runStep(machine, step)).code).toBe(0);

    expect(machine.read("/at-start")).toBe("new\nkey\n");
    expect(statSync(join(machine.root, certificate)).mode & 0o777).toBe(0o600);
    expect(machine.callsOf("kubeadm").find((call) => call.startsWith("kubeconfig"))).toBe(
      "kubeconfig user --config /etc/zoned/kubeadm-init.yaml --client-name system:node:zoned-test-cp-2 --org system:nodes",
    );
  });

  it("looks sixty times, every five seconds, whether a worker's certificate is signed", async () => {
    const machine = memberIn(worker);
    machine.write("/var/lib/zoned/variables", "machine=it api_name=api api_port=6443\n");
    machine.program("openssl", "");
    machine.program(
      "curl",
      `case $* in
        *--data*) echo '{"metadata": {"name": "the-request"}}' ;;
        *the-request*) echo x >>"$root/looks"
          if (($(wc -l <"$root/looks") < 60)); then echo '{}'
          else echo '{"status": {"certificate": "${base64("new\n")}"}}'; fi ;;
      esac`,
    );

    const { code, stdout } = await machine.run(script, ["request_kubelet_certificate"]);

    expect([code, stdout.trim()]).toEqual([0, "new"]);
  });

  it("asks for the certificate of a worker with the longest name that settings give one", async () => {
    const longest = `${"c".repeat(40)}-${"p".repeat(16)}-10000`;
    const machine = memberIn(worker);
    machine.write("/var/lib/zoned/variables", `machine=${longest} api_name=api api_port=6443\n`);
    machine.program("openssl", 'exec /usr/bin/openssl "$@"');
    machine.program(
      "curl",
      `case $* in
        *--data*) echo "$*" >"$root/asked"; echo '{"metadata": {"name": "the-request"}}' ;;
        *) echo '{"status": {"certificate": "${base64("new\n")}"}}' ;;
      esac`,
    );

    expect((await machine.run(script, ["request_kubelet_certificate"])).code).toBe(0);

    const [, request = ""] = /"request": "([^"]+)"/.exec(machine.read("/asked")) ?? [];
    const subject = execFileSync("/usr/bin/openssl", ["req", "-noout", "-subject"], {
      input: Buffer.from(request, "base64"),
      encoding: "utf8",
    });
    expect(subject).toMatch(new RegExp(`CN ?= ?system:node:${longest}\n$`));
  });

  it("tells who is to join of the CAs, by the control plane that gives the cluster its configuration", async () => {
    const payload = { ...controlPlane, configuration: "later", clusterConfiguration: "of all" };
    const machine = memberIn({ ...payload, tasks: ["cas"] });
    const info = { data: { kubeconfig: "  certificate-authority-data: b2xk\n" } };
    first(
      machine,
      "kubectl",
      `case $* in *"configmap cluster-info"*) echo '${JSON.stringify(info)}'; exit ;;
        *"--namespace kube-public replace"*) cat >"$root/published"; exit ;; esac`,
    );

    expect((await runStep(machine, "upgrade_member")).code).toBe(0);

    expect(JSON.parse(machine.read("/published"))).toEqual({
      data: { kubeconfig: `  certificate-authority-data: ${base64("the CA")}\n` },
    });
  });

  it.each([
    ["each control plane", controlPlane, ["patch configmap extension-apiserver-authentication"]],
    ["no worker", worker, []],
  ])("has aggregated APIs forget CAs that go, by %s", async (_, payload, patched) => {
    const machine = memberIn({ ...payload, configuration: "later", tasks: ["cas"] });

    expect((await runStep(machine, "upgrade_member")).code).toBe(0);

    const calls = machine
      .callsOf("kubectl")
      .flatMap((call) => /patch configmap \S+/.exec(call) ?? []);
    expect(calls).toEqual(patched);
  });

  it("restarts pods of the namespaces kube-* when they get the new CAs, and not before", async () => {
    const machine = memberIn({ ...controlPlane, tasks: ["restart-pods"] });
    first(
      machine,
      "kubectl",
      `case $* in
        *kube-root-ca.crt*) echo asked >>"$root/order"; [[ $(wc -l <"$root/order") -lt 3 ]] || printf "the CA before"; exit ;;
        *"get namespaces"*) printf 'namespace/%s\\n' default kube-system kube-flannel; exit ;;
        *"get daemonsets,deployments"*) echo daemonset.apps/it; exit ;;
        *"rollout restart"*) echo "$*" >>"$root/order"; exit ;;
      esac`,
    );

    expect((await runStep(machine, "restart_pods")).code).toBe(0);

    expect(order(machine).map((line) => line.replace(/^.*--namespace/, "in"))).toEqual([
      ...Array<string>(3).fill("asked"),
      "in kube-system rollout restart daemonset.apps/it",
      "in kube-flannel rollout restart daemonset.apps/it",
    ]);
  });

  it("restarts no pods while a Deployment of these namespaces is paused, which kubectl does not restart", async () => {
    const machine = memberIn({ ...controlPlane, tasks: ["restart-pods"] });
    const deployment = (namespace: string, name: string, paused?: boolean) => ({
      metadata: { namespace, name },
      spec: { paused },
    });
    const items = [
      deployment("kube-system", "coredns"),
      deployment("kube-system", "held", true),
      deployment("default", "other", true),
    ];
    first(
      machine,
      "kubectl",
      `case $* in
        *kube-root-ca.crt*) printf "the CA before"; exit ;;
        *"get deployments --all"*) echo '${JSON.stringify({ items })}'; exit ;;
        *"get namespaces"*) echo namespace/kube-system; exit ;;
      esac`,
    );

    expect((await runStep(machine, "restart_pods")).code).toBe(1);

    expect(machine.read("/run/zoned/reason")).toMatch(
      / paused Deployment: kubectl --namespace kube-system rollout resume deployment held; then/,
    );
    expect(machine.callsOf("kubectl").join("\n")).not.toContain("restart");
  });

  it("has restarted no pods where nobody tells which namespaces there are", async () => {
    const machine = memberIn({ ...controlPlane, tasks: ["restart-pods"] });
    first(
      machine,
      "kubectl",
      `case $* in *kube-root-ca.crt*) printf "the CA before"; exit ;; *"get namespaces"*) exit 1 ;; esac`,
    );

    expect((await runStep(machine, "restart_pods")).code).toBe(1);
  });

  it.each<[Payload["role"], Payload, Record<string, number>]>([
    [
      "worker",
      { ...worker, ...next },
      { upgrade_kubeadm: 3, upgrade_member: 1, upgrade_kubelet: 2, undo_drain: 5 },
    ],
    [
      "control-plane",
      { ...controlPlane, ...next, tasks: ["snapshots", "rewrite-secrets"] },
      {
        ...{ upgrade_kubeadm: 3, upgrade_member: 1, upgrade_kubelet: 2, undo_drain: 5 },
        ...{ save_snapshot: 1, keep_certificates: 2, rewrite_secrets: 5 },
      },
    ],
    [
      "control-plane",
      { ...controlPlane, configuration: "now", tasks: ["snapshots", "restart-pods"] },
      { schedule_snapshots: 1, restart_pods: 2, keep_certificates: 2 },
    ],
  ])("of a %s goes on when something has failed this often in a row", async (_, payload, tries) => {
    const machine = memberIn(payload);
    machine.write("/opt/zoned/etcd-snapshot.sh", "#!/bin/bash\n", 0o700);
    first(
      machine,
      "kubectl",
      '[[ $* != *kube-root-ca.crt* ]] || { printf "the CA before"; exit; }',
    );

    expect(await bootstrapDespite(machine, tries)).toEqual(endedWell);
  });

  it.each<[string, Payload]>([
    ["a worker", worker],
    ["a control plane", controlPlane],
  ])(
    "drains %s whose kubelet is to have another room, which ends pods that find none",
    async (_, payload) => {
      const machine = memberIn({ ...payload, configuration: "later", room: "other" }, [pod("web")]);

      expect((await bootstrap(machine)).code).toBe(0);

      expect([...order(machine).slice(0, 2), order(machine).at(-1)]).toEqual([
        ...["cordon", "evict", "uncordon"],
      ]);
      expect(order(machine).join()).not.toContain("first-boot");
      expect(machine.read("/var/lib/zoned/room")).toBe("other\n");
    },
  );

  it("drains nothing where only the rest of the configuration differs", async () => {
    const machine = memberIn({ ...worker, configuration: "later" }, [pod("web")]);

    expect((await bootstrap(machine)).code).toBe(0);

    expect(order(machine).join()).not.toMatch(/evict|first-boot/);
    expect(order(machine)).toContain("kubeadm upgrade node --config");
  });
});
