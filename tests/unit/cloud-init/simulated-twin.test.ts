import { readFileSync } from "node:fs";
import { join } from "node:path";

import { snapshotFiles } from "../../../components/machine/timers";
import { parsePayload, type Payload } from "../../../components/machine/payload";
import { minors, versions } from "../../../components/versions";
import type { Binaries } from "../../../tools/local-azure/machines/simulated/control-plane/control-plane";
import type { ScriptResult, VirtualMachine } from "../../../tools/local-azure/machines/machines";
import {
  Api,
  type Body,
  kubeconfigOf,
  mergePatch,
} from "../../../tools/local-azure/machines/simulated/api";
import { SimulatedMachine } from "../../../tools/local-azure/machines/simulated/machine";
import { SimulatedMachines } from "../../../tools/local-azure/machines/simulated/simulated";
import { allowHttp, withBlobs } from "../../../tools/local-azure/tests/support/arm/blobs";
import { valid } from "../../../tools/local-azure/tests/support/arm/valid-resources";
import { listedControlPlane } from "../../support/bootstrapped-machine";
import { FakeMachine } from "../../support/fake-machine";
import { validSettings } from "../../support/sample";
import { testFolder } from "../../support/test-folder";
import {
  type Fixture,
  newFixture,
  scriptOf,
  trusting,
  vmOf,
} from "../../../tools/local-azure/tests/support/simulated/fixture";
import {
  cniDaemonSet,
  tokenOf,
} from "../../../tools/local-azure/tests/support/simulated/workloads";
import { installed } from "../../support/tools";

/**
 * cloud-init/bootstrap.sh and what simulated machines do in its place, in the same situations: each
 * with the same payload, the script among stand-ins and the simulated machine on the real control
 * plane.
 */
const folder = process.env["ZONED_BINARIES"];
const apiName = "demo.westeurope.cloudapp.azure.com";
const minutes = 5 * 60_000;

/** What surrounds the machine that the script runs on. */
interface World {
  readonly api: "answers" | "silent" | "foreign";
  /** Files that an earlier run, or first boot, has left. */
  readonly files: Readonly<Record<string, string>>;
  readonly hasNetwork: boolean;
  /** Static pods of the other control planes that are not ready. */
  readonly sick: readonly string[];
  readonly isOwnEtcdSick: boolean;
  /** For Azure's storage. */
  readonly token: string;
}

const calm: World = {
  api: "answers",
  files: {},
  hasNetwork: true,
  sick: [],
  isOwnEtcdSick: false,
  token: "",
};

const half = { "/etc/kubernetes/kubelet.conf": "" };
const member = (as: "initialized" | "joined") => ({
  "/var/lib/zoned/joined": `${as}\n`,
  "/var/lib/zoned/boot": "boot 1\n",
  "/var/lib/zoned/configuration": "now\n",
  "/var/lib/zoned/room": "as before\n",
  "/etc/kubernetes/kubelet.conf": "",
  "/etc/kubernetes/pki/ca.crt": "",
});
const encrypting = {
  "/etc/kubernetes/manifests/kube-apiserver.yaml":
    "--encryption-provider-config=/etc/zoned/encryption/secrets.yaml",
};
const cni = { "/etc/cni/net.d/10-it.conflist": "" };
/** A member with a pod network, and files besides. */
const living = (as: "initialized" | "joined" = "joined", more: World["files"] = {}) => ({
  files: { ...member(as), ...cni, ...more },
});

const peer = {
  ...{ ID: "1", name: "demo-cp-1", peerURLs: ["https://172.16.1.4:2380"] },
  clientURLs: ["https://172.16.1.4:2379"],
};

/** The payload's, once a part of the first boot has installed it. */
const installedVersion = (program: string) =>
  `version=${versions.kubernetes}; [[ ! -e $root/install_${program} ]] || . "$root/run/zoned/variables"`;

/** Of a cluster in which no Node is cordoned by others, and no pod is on this node. */
const programs = (vmId: string, { hasNetwork, isOwnEtcdSick }: World) => ({
  "cloud-init": "echo 'status: done'",
  modprobe: "",
  // Says that the kubelet's certificate is of the CA that signs.
  openssl: "",
  systemctl: "",
  crictl: `case $* in
    ps*) echo etcd ;;
    *"snapshot save"*) file=$root\${@: -1}; mkdir -p "$root/var/lib/etcd"; echo it >"$file"; sha256sum "$file" | python3 -c 'import sys
sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read(64)))' >>"$file" ;;
    *"snapshot status"*) echo '{"revision": 1}' ;;
  esac`,
  ctr: `if [[ $* == *" mount "* ]]; then
    mkdir -p "\${@: -1}/usr/local/bin"; cp ${folder}/etcdutl "\${@: -1}/usr/local/bin"; fi`,
  curl: `case $* in
    *oauth2/token*) cat "$root/token" ;;
    *zoned-maintenance*) printf '\\n404' ;;
    *maintenance/status*) echo '{"version":"3.7.0"}' ;;
    *"--request PUT"*) echo 201 ;;
    *"/etcd?"* | */etcd/demo*) exec ${installed("curl", "curl")} "$@" ;;
    *169.254.169.254*) echo -n ${vmId} ;;
    *2381/health*) ${isOwnEtcdSick ? "echo 'no answer' >&2; exit 7" : ""} ;;
    *10250/pods*) cat "$root/own-pods" ;;
    *--resolve*) ;;
    *2379/health*) echo '{"health":"true"}' ;;
    *maintenance/alarm*) echo '{}' ;;
    *member/list*) echo '${JSON.stringify({ members: [peer] })}' ;;
    *"/api/v1/pods"*) echo '{"items":[]}' ;;
    *'"unschedulable": true'*) touch "$root/drained" ;;
    *PATCH*) rm -f "$root/drained" ;;
    *"/api/v1/nodes/"*) mark=; [[ ! -e $root/drained ]] || mark='"zoned/drained":"unschedulable"'
      echo "{\\"metadata\\":{\\"annotations\\":{$mark}},"'"status":{"conditions":[{"type":"Ready","status":"True"}]}}' ;;
    *"/leases/"*) TZ=UTC0 printf '{"spec": {"renewTime": "%(%FT%TZ)T"}}' -1 ;;
    *readyz*) case $(cat "$root/api") in answers) ;; foreign) exit 60 ;; *) exit 28 ;; esac ;;
  esac`,
  kubectl: `case $* in
    */metrics*) read -r digest _ < <(sha256sum <"$root/etc/zoned/encryption/secrets.yaml")
      printf 'apiserver_encryption_config_controller_last_config_info{hash="sha256:%s"} 1' "$digest" ;;
    *"get namespaces"*) ;;
    *kube-root-ca.crt*) cat "$root/etc/kubernetes/pki/ca.crt" ;;
    *"--output name"*) [[ $(cat "$root/api") == answers ]] || { echo "no route" >&2; exit 1; } ;;
    *"get nodes,pods"*) cat "$root/objects" ;;
    *"get pods"*) echo '{"items":[{"metadata":{"annotations":
      {"kubeadm.kubernetes.io/etcd.advertise-client-urls":"https://172.16.1.4:2379"}}}]}' ;;
  esac`,
  kubelet: `${installedVersion("kubelet")}; echo "Kubernetes v$version"`,
  kubeadm: `case $* in
    version*) ${installedVersion("kubeadm")}; echo "v$version" ;;
    "config images list"*) ${installedVersion("kubeadm")}
      [[ $version == ${minors[1].minor}.* ]] && echo registry.k8s.io/etcd:${minors[1].etcd} || echo registry.k8s.io/etcd:${versions.etcd} ;;
    "upgrade"*) ;;
    "kubeconfig user"*) echo minted ;;
    "init phase"*) ;;
    init*) touch "$root/etc/kubernetes/admin.conf" ;;
    join*) ${hasNetwork ? 'mkdir -p "$root/etc/cni/net.d"; touch "$root/etc/cni/net.d/it.conf"' : ":"} ;;
    reset*) rm -rf "$root/etc/kubernetes" ;;
  esac`,
});

async function runScript(
  vm: VirtualMachine,
  script: string,
  change: Partial<World>,
  env: Record<string, string>,
) {
  const world = { ...calm, ...change };
  const machine = new FakeMachine(programs(vm.vmId, world));
  const items = ["demo-cp-1", "demo-cp-2"].flatMap((name) => listedControlPlane(name, world.sick));
  machine.write("/objects", JSON.stringify({ items }));
  machine.write("/own-pods", JSON.stringify({ items: listedControlPlane(vm.name, world.sick) }));
  machine.write("/api", world.api);
  machine.write("/usr/bin/curl", "");
  machine.write("/proc/sys/kernel/random/boot_id", "boot 1\n");
  machine.write(
    "/opt/zoned/first-boot.sh",
    '#!/bin/bash\n(($# > 0))\n[[ $1 != install_* ]] || touch "$ZONED_ROOT/$1"\n',
    0o700,
  );
  machine.write("/token", JSON.stringify({ access_token: world.token }));
  machine.write(
    "/etc/zoned/first-boot.env",
    `KUBERNETES_VERSION=${versions.kubernetes}\nCONTAINER_RUNTIME=docker\n`,
  );
  const files = { "/var/lib/zoned/first-boot.done": "", ...world.files };
  for (const [path, text] of Object.entries(files)) machine.write(path, text);
  if ("/var/lib/zoned/first-boot.failed" in files)
    machine.removeFile("/var/lib/zoned/first-boot.done");
  machine.write("/opt/zoned/renew-certificates.sh", "");
  machine.ship("bootstrap.sh", "/script.sh", `${JSON.stringify(parsePayload(script))}\n`);
  const { code, stdout, stderr } = await machine.run("/script.sh", [], env);
  return { exitCode: code, stdout, stderr };
}

/** The steps by their names, and where one was refused, the message and that step. */
function courseOf({ exitCode, stdout, stderr }: ScriptResult) {
  const steps = [...stdout.matchAll(/ bootstrap: (.+?): (?:done after|failed with)/g)];
  return {
    steps: steps.map(([, step]) => step),
    refusal: exitCode === 0 ? "" : stderr.trim().split("\n").slice(-2).join("\n"),
  };
}

/** The same script of another configuration, as the next update sends it. */
const configured = (script: string, change: object = {}): string => {
  const [program, payload = ""] = script.split("\n#--- payload ---\n");
  const changed = { ...JSON.parse(payload), configuration: "later", ...change };
  return `${program}\n#--- payload ---\n${JSON.stringify(changed)}\n`;
};

type Blobs = Parameters<Parameters<typeof withBlobs>[0]>[0];

/** The same script of a cluster that saves etcd to this container. */
function saving(script: string, blobs: Blobs, change: Partial<Payload> = {}): string {
  const etcdBackups = { container: valid.container[0], every: "1h", endpoint: blobs.endpoint };
  const settings = { ...validSettings, clusterName: "demo", etcdBackups };
  const files = snapshotFiles(settings, blobs.identity.clientId, "the stack's secret");
  const own = parsePayload(script).files;
  return configured(script, {
    configuration: "now",
    tasks: ["snapshots"],
    files: [...own, ...files],
    ...change,
  });
}

/** In the order in which they come about: the simulated machines share a cluster. */
interface Situation {
  readonly situation: string;
  readonly prepare?: () => Promise<unknown>;
  readonly vm: VirtualMachine;
  readonly script?: () => string;
  readonly world?: Partial<World>;
  readonly steps: readonly string[];
  /** Of the message, what the script itself says, and not a client of its own. */
  readonly refusal?: RegExp;
  /** What the simulated cluster has then, which the script leaves to kubeadm and kubectl. */
  readonly after?: () => Promise<void>;
}

/** What of the simulated machine's limits holds for a step. */
const limitOf = (step: string) =>
  step === "node" ? "ready" : step === "other control planes" ? "peers" : "api";

const before = ["payload", "first boot", "kernel modules", "packages", "search for the API"];
const again = ["payload", "first boot", "kernel modules"];
const last = ["other control planes", "certificates", "secrets"];
const joined = [...before, "kubeadm join", "control plane", "node", ...last];
const unchanged = [...again, "control plane", "node", "certificates", "secrets"];
/** The machine was restarted or half done, and the others are checked before it ends. */
const resumed = [...again, "control plane", "node", ...last];
const upgraded = [
  ...[...again, "other control planes", "packages", "turn"],
  ...["kubeadm upgrade", "kubelet", "static pods"],
];
const upgradedWorker = [
  ...[...again, "packages", "turn", "drain"],
  ...["kubeadm upgrade", "kubelet", "node", "uncordon", "secrets"],
];

(folder ? describe : describe.skip)(
  "a simulated machine takes bootstrap.sh's steps to its end",
  () => {
    const stateDir = testFolder();
    const names = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];
    const binaries = Object.fromEntries(
      [...names, "etcdctl", "etcdutl", "kubeadm", "kwok"].map((name) => [
        name,
        join(folder!, name),
      ]),
    ) as Binaries;
    const patience = { api: minutes, ready: minutes, peers: minutes };
    const limits = { ...patience };
    const machines = new SimulatedMachines({ stateDir, binaries, limits, log: () => undefined });
    const cp = [1, 2, 3, 4].map((index) =>
      vmOf(`demo-cp-${index}`, "1", `172.16.1.${index + 3}`),
    ) as [VirtualMachine, VirtualMachine, VirtualMachine, VirtualMachine];
    const halfInitial = vmOf("demo-cp-1", "1", "172.16.1.4");
    const [worker, halfWorker] = [1, 2].map((index) =>
      vmOf(`demo-workers-${index}`, "2", `172.16.2.${index + 3}`),
    ) as [VirtualMachine, VirtualMachine];
    const another = vmOf("demo-cp-1", "1", "172.16.1.4");
    let blobs: Blobs;
    let closeBlobs: () => void;
    const unbooted = { ...vmOf("demo-cp-5", "1", "172.16.1.8"), customData: "" };
    const initialControlPlane = cp[0].vmId;
    let fixture: Fixture;
    let otherCluster: Fixture;

    const script = (
      vm: VirtualMachine,
      initial = initialControlPlane,
      of = fixture,
      encryptionKeys = "1",
    ): string =>
      scriptOf(
        of,
        vm,
        vm.name.includes("workers")
          ? { token: tokenOf(vm.name).token }
          : { initialControlPlane: initial, encryptionKeys },
      );
    /** The same of CAs of these clusters, by their numbers. */
    const authorities = (vm: VirtualMachine, numbers: string, ...of: Parameters<typeof trusting>) =>
      scriptOf(trusting(...of), vm, {
        initialControlPlane: vm === another ? vm.vmId : initialControlPlane,
        authorities: numbers,
      });
    const create = (...vms: VirtualMachine[]) => Promise.all(vms.map((vm) => machines.create(vm)));
    const admin = () => {
      const file = join(stateDir, "clusters", apiName, "root/etc/kubernetes/admin.conf");
      const { ca, user } = kubeconfigOf(readFileSync(file, "utf8"));
      return new Api({ ...machines.apiAddress(apiName)!, serverName: apiName, ca }, user);
    };
    /** Who is to join trusts these CAs. */
    const publishes = async ({ pki }: Fixture) => {
      const info = await admin().get("/api/v1/namespaces/kube-public/configmaps/cluster-info");
      expect(info.data.kubeconfig).toContain(Buffer.from(pki["ca.crt"]!).toString("base64"));
    };
    const apply = async (objects: readonly (readonly [string, object])[]) => {
      for (const [path, object] of objects) await admin().post(path, object);
    };
    beforeAll(async () => {
      [fixture, otherCluster] = [await newFixture(apiName), await newFixture(apiName)];
      for (const vm of [halfInitial, halfWorker]) {
        SimulatedMachine.create(join(stateDir, "machines"), vm).beginJoin();
      }
      await machines.resume([halfInitial, halfWorker]);
      await new Promise<void>((ready) => {
        void withBlobs(async (opened) => {
          blobs = opened;
          await allowHttp(blobs.arm);
          await blobs.grant();
          ready();
          await new Promise<void>((close) => (closeBlobs = close));
        });
      });
    });

    afterAll(async () => {
      closeBlobs();
      await machines.stop();
    });

    it.each<Situation>([
      {
        situation: "another control plane, the initial one lost",
        prepare: () => create(cp[1]),
        vm: cp[1],
        world: { api: "silent" },
        steps: before,
        refusal: /^no API answers at .+ may initialize .+ takes their place\n.+ 124$/,
      },
      {
        situation: "the initial control plane, half joined, no API",
        vm: halfInitial,
        script: () => script(halfInitial, halfInitial.vmId),
        world: { api: "silent", files: half },
        steps: before,
        refusal: /^no API answers at .+ begun to join one: .+\n.+ 1$/,
      },
      {
        situation: "a worker, no API",
        prepare: () => create(worker),
        vm: worker,
        world: { api: "silent" },
        steps: before,
        refusal: /step "search for the API" failed with exit code 124$/,
      },
      {
        situation: "a machine whose first boot failed",
        prepare: () => create(unbooted),
        vm: unbooted,
        script: () => script(unbooted, unbooted.vmId),
        world: { api: "silent", files: { "/var/lib/zoned/first-boot.failed": "packages" } },
        steps: before.slice(0, 2),
        refusal: /^first boot failed: |\n.+ 1$/,
      },
      {
        situation: "the initial control plane, fresh",
        prepare: () => create(cp[0]),
        vm: cp[0],
        world: { api: "silent", hasNetwork: false },
        steps: [...before, "kubeadm init", "control plane", "certificates", "secrets"],
      },
      {
        situation: "the initial control plane, a member, before there is a pod network",
        vm: cp[0],
        world: { files: member("initialized") },
        steps: [...again, "control plane", "certificates", "secrets"],
      },
      {
        situation: "another control plane, with another cluster's CA",
        vm: cp[1],
        script: () => script(cp[1], initialControlPlane, otherCluster),
        world: { api: "foreign" },
        steps: before,
        refusal: /^at .+ somebody else's cluster answers, .+\n.+ 1$/,
      },
      {
        situation: "a worker, fresh, before there is a pod network",
        prepare: () => apply(tokenOf(worker.name).objects),
        vm: worker,
        world: { hasNetwork: false },
        steps: [...before, "kubeadm join", "node"],
        refusal: /^node demo-workers-1: no pod network yet, .+\n.+ 124$/,
      },
      {
        situation: "a worker, a member",
        prepare: () => apply(cniDaemonSet),
        vm: worker,
        world: living(),
        steps: [...again, "node", "secrets"],
      },
      {
        situation: "a worker, half joined",
        prepare: () => apply(tokenOf(halfWorker.name).objects),
        vm: halfWorker,
        world: { files: half },
        steps: [...before, "kubeadm join", "node", "secrets"],
      },
      {
        situation: "the initial control plane, a member with a pod network",
        vm: cp[0],
        world: living("initialized"),
        steps: unchanged,
      },
      {
        situation: "another control plane, fresh",
        vm: cp[1],
        steps: joined,
      },
      {
        situation: "another control plane, a member",
        vm: cp[1],
        world: living(),
        steps: unchanged,
      },
      {
        situation: "a member with another configuration",
        vm: cp[1],
        script: () => configured(script(cp[1])),
        world: living(),
        steps: [...upgraded, "control plane", "node", ...last],
      },
      {
        situation: "a member that comes last in a change of the key of Secrets",
        vm: cp[1],
        script: () =>
          configured(script(cp[1], initialControlPlane, fixture, "1 2"), {
            ...{ configuration: "another key", tasks: ["rewrite-secrets"] },
          }),
        world: living("joined", encrypting),
        steps: [...upgraded, "control plane", "node", ...last.toSpliced(-1, 0, "encryption")],
      },
      {
        situation: "a member whose scheduler does not come back after its kubelet was started anew",
        prepare: () => machines.injectFailure("demo-cp-2", "kube-scheduler"),
        vm: cp[1],
        script: () => configured(script(cp[1]), { configuration: "one more" }),
        world: { ...living(), sick: ["kube-scheduler-demo-cp-2"] },
        steps: upgraded,
        refusal: /^not Ready for the kubelet: kube-scheduler-demo-cp-2\n.+ 124$/,
      },
      {
        situation: "a worker that is to take another number of pods",
        prepare: () => machines.clearFailures("demo-cp-2"),
        vm: worker,
        script: () => configured(script(worker), { maxPods: 50, room: "other" }),
        world: living(),
        steps: upgradedWorker,
        after: async () => {
          const { status } = await admin().get(`/api/v1/nodes/${worker.name}`);
          expect(status).toMatchObject({ capacity: { pods: "50" }, allocatable: { pods: "50" } });
        },
      },
      {
        situation: "a worker with another version, which an update has drained",
        prepare: () =>
          admin().patch(
            `/api/v1/nodes/${worker.name}`,
            {
              metadata: { annotations: { "zoned/drained": "unschedulable excluded upgrade" } },
              spec: { unschedulable: true },
            },
            mergePatch,
          ),
        vm: worker,
        script: () =>
          configured(script(worker), { kubernetesVersion: "1.36.4", configuration: "last" }),
        world: living(),
        steps: upgradedWorker,
        after: async () => {
          const { metadata, spec } = await admin().get(`/api/v1/nodes/${worker.name}`);
          expect(metadata.annotations).not.toHaveProperty(["zoned/drained"]);
          expect(spec).not.toHaveProperty("unschedulable");
        },
      },
      {
        situation: "a control plane that may initialize, where an API answers",
        prepare: () => create(cp[2]),
        vm: cp[2],
        script: () => script(cp[2], cp[2].vmId),
        steps: joined,
      },
      {
        situation: "a control plane, fresh, another one not well",
        prepare: async () => {
          await create(cp[3]);
          await machines.injectFailure("demo-cp-2", "kube-scheduler");
        },
        vm: cp[3],
        world: { sick: ["kube-scheduler-demo-cp-2"] },
        steps: [...before, "kubeadm join", "control plane", "node", "other control planes"],
        refusal:
          /^another control plane is not well.+ static pod kube-scheduler-demo-cp-2 .+\n.+ 124$/,
      },
      {
        situation: "the same machine, all well again",
        prepare: () => machines.clearFailures("demo-cp-2"),
        vm: cp[3],
        world: living("joined", { "/var/lib/zoned/touched": "" }),
        steps: resumed,
      },
      {
        situation: "a control plane that was rebooted",
        prepare: () => machines.restart(cp[3]),
        vm: cp[3],
        world: living("joined", { "/var/lib/zoned/boot": "boot 0\n" }),
        steps: resumed,
      },
      {
        situation: "a control plane whose own etcd is not well",
        prepare: () => machines.injectFailure("demo-cp-4", "etcd"),
        vm: cp[3],
        world: { ...living(), isOwnEtcdSick: true },
        steps: [...again, "control plane"],
        refusal: /step "control plane" failed with exit code 124$/,
      },
      {
        situation: "a control plane that is to save etcd by the clock",
        prepare: async () => {
          await machines.clearFailures("demo-cp-4");
          Object.assign(cp[0], { identities: [blobs.identity] });
        },
        vm: cp[0],
        script: () => saving(script(cp[0]), blobs),
        world: living("initialized"),
        steps: [...again, "control plane", "snapshots", "node", "certificates", "secrets"],
      },
      {
        situation: "a control plane that is to go back to the minor before, whose etcd is older",
        vm: cp[0],
        script: () =>
          saving(script(cp[0]), blobs, { kubernetesVersion: "1.36.4", configuration: "before" }),
        world: living("initialized", {
          "/etc/kubernetes/manifests/etcd.yaml": `    image: registry.k8s.io/etcd:${versions.etcd}\n`,
        }),
        steps: [...again, "other control planes", "packages"],
        refusal: /^etcd of this machine is \d+\.\d+\.\d+|\n.+ 1$/,
      },
      {
        situation: "a control plane with another version, which is saved before",
        vm: cp[0],
        script: () =>
          saving(script(cp[0]), blobs, { kubernetesVersion: "1.37.9", configuration: "last" }),
        world: living("initialized"),
        steps: [
          ...again,
          "other control planes",
          ...["packages", "snapshot", "turn", "drain", "kubeadm upgrade", "kubelet", "static pods"],
          ...["control plane", "snapshots", "node", "uncordon"],
          ...last,
        ],
      },
      {
        situation: "a control plane that comes last where other CAs are trusted from now on",
        vm: cp[3],
        script: () =>
          configured(authorities(cp[3], "1 2", fixture, otherCluster), {
            ...{ clusterConfiguration: "of two CAs", tasks: ["cas", "restart-pods"] },
          }),
        world: living(),
        steps: [...upgraded, "control plane", "node", ...last.toSpliced(-1, 0, "pods")],
        after: async () => {
          await publishes(trusting(fixture, otherCluster));
          const [[daemonSets, network]] = cniDaemonSet as [[string, Body]];
          const { spec } = await admin().get(`${daemonSets}/${network.metadata.name}`);
          expect(spec.template.metadata.annotations).toHaveProperty([
            "kubectl.kubernetes.io/restartedAt",
          ]);
        },
      },
      {
        situation: "a control plane that trusts several CAs, and whose change of CAs is taken back",
        vm: cp[3],
        script: () =>
          configured(script(cp[3]), { clusterConfiguration: "of one CA", configuration: "back" }),
        world: living("joined", {
          "/etc/kubernetes/pki/ca.crt": "-----BEGIN CERTIFICATE-----\n".repeat(2),
        }),
        steps: [...upgraded, "control plane", "node", ...last],
        after: () => publishes(fixture),
      },
      {
        situation: "a control plane that is to restore the cluster, and finds no such snapshot",
        prepare: async () => {
          for (const vm of cp) await machines.remove(vm);
          Object.assign(another, { identities: [blobs.identity] });
          await create(another);
        },
        vm: another,
        script: () =>
          saving(script(another, another.vmId), blobs, { restoredFrom: "20250101T000000Z-1.db" }),
        world: { api: "silent" },
        steps: [...before, "snapshot"],
        refusal:
          /^there is no snapshot demo\/20250101T000000Z-1\.db in \S+; the newest are: .+\n.+ 1$/,
      },
      {
        situation: "a control plane that restores the cluster amid a change of its CAs",
        vm: another,
        script: () =>
          saving(authorities(another, "1 2", fixture, otherCluster), blobs, {
            ...{ restoredFrom: "latest", tasks: ["snapshots", "cas"] },
          }),
        world: { api: "silent", files: cni },
        steps: [
          ...[...before, "snapshot", "kubeadm init", "control plane"],
          ...["snapshots", "node", "certificates", "secrets"],
        ],
        after: () => publishes(trusting(fixture, otherCluster)),
      },
      {
        situation: "a worker of the cluster that was restored",
        vm: worker,
        world: living(),
        script: () =>
          configured(script(worker), { kubernetesVersion: "1.37.5", configuration: "restored" }),
        steps: upgradedWorker,
      },
      {
        situation: "the control plane that has restored it, whose certificates the next CA signs",
        vm: another,
        script: () =>
          saving(authorities(another, "2 1", otherCluster, fixture, fixture), blobs, {
            ...{ clusterConfiguration: "of CA 2", configuration: "2 1" },
            tasks: ["snapshots", "cas"],
          }),
        world: living(),
        steps: [...upgraded, "control plane", "snapshots", "node", ...last],
        after: () => publishes(trusting(otherCluster, fixture)),
      },
    ])("$situation", async ({ prepare, vm, world = {}, steps, refusal = /^$/, ...given }) => {
      await prepare?.();
      const text = given.script?.() ?? script(vm);
      const token = blobs.token();
      const waitsInVain = / 124/.test(refusal.source);
      Object.assign(limits, patience, waitsInVain && { [limitOf(steps.at(-1)!)]: 0 });
      const courses = [
        runScript(vm, text, { token, ...world }, waitsInVain ? { HANGS: "*" } : {}),
        machines.runScript(vm, text),
      ];
      const [real, simulated] = (await Promise.all(courses)).map(courseOf);

      expect(real!.steps).toEqual(steps);
      expect(simulated!.steps).toEqual(steps);
      expect(real!.refusal).toMatch(refusal);
      expect(refusal.exec(simulated!.refusal)?.[0]).toBe(refusal.exec(real!.refusal)?.[0]);
      await given.after?.();
    });
  },
);
