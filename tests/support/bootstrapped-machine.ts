import { Payload } from "../../components/machine/payload";
import { FakeMachine } from "./fake-machine";
import { Outcome } from "./tools";

/** A machine that runs bootstrap.sh, and the cluster around it. */

export const caKey = "-----BEGIN PRIVATE KEY-----\nsecret of the CA\n";
export const token = "abcdef.0123456789abcdef";
export const base64 = (text: string) => Buffer.from(text).toString("base64");

export const controlPlane: Payload = {
  machine: "zoned-test-cp-2",
  role: "control-plane",
  initialControlPlane: "11111111-aaaa-4bbb-8ccc-000000000001",
  apiName: "zoned-test.westeurope.cloudapp.azure.com",
  apiPort: 6443,
  kubernetesVersion: "9.9.9",
  configuration: "now",
  tasks: [],
  drainMinutes: 15,
  nodeAddress: "172.16.2.5",
  maxPods: 110,
  room: "as before",
  modules: ["ip_vs", "ip_vs_wlc"],
  files: [
    { path: "/etc/kubernetes/pki/ca.crt", mode: "0644", content: "the CA" },
    { path: "/etc/kubernetes/pki/ca.key", mode: "0600", content: caKey },
    { path: "/etc/kubernetes/pki/etcd/ca.crt", mode: "0644", content: "etcd's CA" },
    { path: "/etc/kubernetes/pki/front-proxy-ca.crt", mode: "0644", content: "the proxy's CA" },
    { path: "/etc/zoned/kubeadm-init.yaml", mode: "0600", content: "init" },
    { path: "/etc/zoned/kubeadm-join.yaml", mode: "0600", content: "join" },
    { path: "/etc/zoned/kubeadm-reset.yaml", mode: "0600", content: "reset" },
  ],
};

export const worker: Payload = {
  ...controlPlane,
  machine: "zoned-test-workers-1",
  role: "worker",
  initialControlPlane: undefined,
  files: [
    {
      path: "/etc/zoned/discovery.conf",
      mode: "0600",
      content: JSON.stringify({
        clusters: [{ cluster: { "certificate-authority-data": base64("the CA") } }],
        users: [{ user: { token } }],
      }),
    },
    ...controlPlane.files.filter(({ path }) => /join|reset/.test(path)),
  ],
};

export const someoneElse = "22222222-aaaa-4bbb-8ccc-000000000002";

export interface Member {
  readonly ID: string;
  readonly name?: string;
  readonly peerURLs: readonly string[];
  readonly clientURLs?: readonly string[];
  readonly isLearner?: boolean;
}

/** What a machine's surroundings are; each is a file that the fakes read. */
export interface World {
  readonly vmId: string;
  readonly api: "answers" | "silent" | "foreign";
  /** How many of its first calls fail. */
  readonly failing: Partial<Record<"init" | "join" | "member-list", number>>;
  readonly members: readonly Member[];
  /** A Node of this machine's name exists. */
  readonly node: boolean;
  readonly ready: string;
}

export const peer = {
  ID: "18446744073709551615",
  name: "zoned-test-cp-1",
  peerURLs: ["https://172.16.1.4:2380"],
  clientURLs: ["https://172.16.1.4:2379"],
};
export const stale = {
  ID: "9007199254740993",
  name: controlPlane.machine,
  peerURLs: ["https://172.16.2.5:2380"],
};

export const calm: World = {
  vmId: someoneElse,
  api: "answers",
  failing: {},
  members: [peer],
  node: false,
  ready: "True KubeletReady",
};

const pods = {
  items: ["172.16.2.5", "172.16.1.4"].map((address) => ({
    metadata: {
      annotations: {
        "kubeadm.kubernetes.io/etcd.advertise-client-urls": `https://${address}:2379`,
      },
    },
  })),
};

/** What a kubelet has last said, and when. */
export const leaseOf = (renewTime: string) => JSON.stringify({ spec: { renewTime } });

type Listed = ReturnType<typeof listedNode> | ReturnType<typeof listedPod>;

const controlPlaneLabel = "node-role.kubernetes.io/control-plane";

export const listedNode = (name: string, ready = "True", label = controlPlaneLabel) => ({
  kind: "Node",
  metadata: { name, labels: { [label]: "" } },
  status: {
    conditions: [
      { type: "DiskPressure", status: "False" },
      { type: "Ready", status: ready, reason: "KubeletNotReady", message: "the runtime is down" },
    ],
  },
});

export const listedPod = (name: string, ready = "True") => ({
  kind: "Pod",
  metadata: { name },
  status: { conditions: [{ type: "Ready", status: ready }] },
});

export const staticPods = (node: string) =>
  ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"].map((component) =>
    listedPod(`${component}-${node}`),
  );

/** A control plane's Node and its static pods, of which some may not be Ready. */
export const listedControlPlane = (name: string, sick: readonly string[] = []): Listed[] => [
  listedNode(name),
  ...staticPods(name).map(({ metadata: { name: pod } }) =>
    listedPod(pod, sick.includes(pod) ? "False" : "True"),
  ),
];

/** What the kubelet of this machine says of its own static pods, of which one may not be Ready yet. */
export const kubeletPods = (starting?: string) =>
  JSON.stringify({
    items: listedControlPlane(controlPlane.machine, [`${starting}-${controlPlane.machine}`]).slice(
      1,
    ),
  });

/** Nodes and pods of a cluster that is well, but for this machine and a worker. */
export const allWell: readonly Listed[] = [
  listedNode(controlPlane.machine, "False"),
  listedPod(`etcd-${controlPlane.machine}`, "False"),
  listedNode(worker.machine, "False", "kubernetes.io/os"),
  ...listedControlPlane(peer.name),
];

/** The cluster with other objects of these names, and without those that are `undefined`. */
export const clusterWith = (
  changes: Readonly<Record<string, Listed | undefined>>,
): readonly Listed[] =>
  allWell
    .map((one) => (one.metadata.name in changes ? changes[one.metadata.name] : one))
    .filter((one) => one !== undefined);

const fails = (what: string) =>
  `left=$(cat "$root/failing/${what}" 2>/dev/null || echo 0)
  if ((left > 0)); then echo $((left - 1)) >"$root/failing/${what}"; echo "${what} went wrong" >&2; exit 7; fi`;

export const programs = {
  "cloud-init": "echo 'status: running'",
  "first-boot": "",
  renewal: "",
  // Says that the kubelet's certificate is of the CA that signs.
  openssl: "",
  systemctl: "",
  modprobe: "",
  kubelet: "echo Kubernetes v9.9.9",
  nproc: "echo 2",
  free: "echo '       total  used\nMem:   7900   400'",
  curl: `case $* in
    # The metadata service refuses what comes without this header.
    *169.254.169.254*) [[ $* == *"--header Metadata:true"* && $* == *"--noproxy *"* && $* == *"format=text" ]] || exit 22
      cat "$root/vm-id" ;;
    *zoned-maintenance*) printf '\\n404' ;;
    *:203.0.113.7*) echo x >>"$root/probed"; (($(wc -l <"$root/probed") >= $(cat "$root/probes"))) || exit 28 ;;
    *--resolve*) [[ -e $root/etc/kubernetes/manifests/kube-apiserver.yaml ]] ;;
    *2381/health*) [[ ! -e $root/own-etcd-is-down ]] || exit 22 ;;
    *2379/health*) cat "$root/health" ;;
    *maintenance/alarm*) cat "$root/alarms" ;;
    *member/*) [[ -e $root/etc/kubernetes/pki/etcd/healthcheck-client.crt ]] || exit 58 ;;&
    *member/list*) ${fails("member-list")}; cat "$root/members" ;;
    *member/remove*) jq -c --arg call "$*" '.members |= map(select(.ID as $id | $call | contains($id) | not))' \\
      <"$root/members" >"$root/members.new" && mv "$root/members.new" "$root/members" ;;
    *"/api/v1/nodes/"*) read -r status reason message < <(cat "$root/ready"; echo)
      printf '{"status": {"conditions": [{"type": "DiskPressure", "status": "False"},
        {"type": "Ready", "status": "%s", "reason": "%s", "message": "%s"}]}}' "$status" "$reason" "$message" ;;
    *"/leases/"*) cat "$root/lease" ;;
    *readyz*) case $(cat "$root/api") in answers) ;; foreign) exit 60 ;; *) exit 28 ;; esac ;;
  esac`,
  kubectl: `case $* in
    *"--ignore-not-found --output name"*)
      [[ $(cat "$root/api") == answers ]] || { echo "no route to the API" >&2; exit 1; }
      [[ ! -e $root/node ]] || echo node/it ;;
    *"delete node"*) rm -f "$root/node" ;;
    *"get nodes --selector"*) echo zoned-test-cp-1 zoned-test-cp-2 ;;
    *"get nodes,pods"*) cat "$root/objects" ;;
    *"get pods"*) echo '${JSON.stringify(pods)}' ;;
  esac`,
  kubeadm: `made() { mkdir -p "$root/etc/kubernetes/manifests" "$root/var/lib/etcd/member"
      touch "$root/etc/kubernetes/kubelet.conf" "$root/etc/kubernetes/manifests/kube-apiserver.yaml"; }
    case $* in
    version*) echo v9.9.9 ;;
    "init phase certs etcd-healthcheck-client"*) touch "$root/etc/kubernetes/pki/etcd/healthcheck-client.crt" ;;
    "init phase"*) ;;
    "kubeconfig user"*) echo "minted ${token}" ;;
    init*) cp "$root/etc/hosts" "$root/hosts-at-init"; made; ${fails("init")} ;;
    join*) cp "$root/etc/hosts" "$root/hosts-at-join";
      made; ${fails("join")}
      mkdir -p "$root/etc/cni/net.d"; touch "$root/etc/cni/net.d/10-it.conflist" ;;
    reset*) rm -rf "$root/etc/kubernetes" "$root/var/lib/etcd" ;;
  esac`,
};

export const script = "/script.sh";

export const ship = (machine: FakeMachine, payload: Payload) =>
  machine.ship("bootstrap.sh", script, `${JSON.stringify(payload)}\n`);

export const machineIn = (world: Partial<World> = {}, payload: Payload = controlPlane) => {
  const machine = new FakeMachine(programs);
  const { vmId, api, failing, members, node, ready } = { ...calm, ...world };
  machine.write("/vm-id", vmId);
  machine.write("/api", api);
  for (const [what, times] of Object.entries(failing))
    machine.write(`/failing/${what}`, `${times}`);
  machine.write("/members", JSON.stringify({ members }));
  if (node) machine.write("/node", "");
  machine.write("/ready", ready);
  machine.write("/health", '{"health":"true","reason":""}');
  machine.write("/alarms", '{"header":{"member_id":"1"}}');
  machine.write("/objects", JSON.stringify({ items: allWell }));
  machine.write("/lease", leaseOf("2999-01-01T00:00:00.000000Z"));
  machine.write("/proc/sys/kernel/random/boot_id", "b0071d00-0000-4000-8000-000000000001\n");
  machine.write("/var/lib/zoned/first-boot.done", "");
  machine.write("/opt/zoned/first-boot.sh", '#!/bin/bash\nfirst-boot "$@"\n', 0o700);
  machine.write("/opt/zoned/renew-certificates.sh", 'renewal "$@"\n', 0o700);
  ship(machine, payload);
  return machine;
};

/** Lets kubeadm's join do this first. */
export const beforeJoining = (machine: FakeMachine, commands: string): void =>
  machine.program("kubeadm", programs.kubeadm.replace("join*)", `join*) ${commands};`));

export const bootstrap = (machine: FakeMachine, env: Record<string, string> = {}) =>
  machine.run(script, [], env);

/** One function of the script, as the step that calls it does when the payload has been read. */
export const runStep = async (
  machine: FakeMachine,
  step: string,
  env: Record<string, string> = {},
): Promise<Outcome> => {
  machine.write("/run/zoned/it", "");
  expect(await machine.run(script, ["read_payload"])).toMatchObject({ code: 0, stderr: "" });
  return machine.run(script, [step], env);
};

/** What was done to the world, in order; questions left out. */
export const deeds = (machine: FakeMachine): string[] =>
  machine.calls.flatMap(([program, ...args]) => {
    const line = args.join(" ");
    if (program === "kubeadm")
      return /^(init --|join|reset)/.exec(line) ? [line.split(" ")[0]!] : [];
    if (program === "kubectl") return line.includes("delete node") ? ["delete node"] : [];
    return program === "curl" && line.includes("member/remove") ? ["remove member"] : [];
  });

/** Runs the step on a machine where functions fail so often in a row before they do not. */
export async function bootstrapDespite(
  machine: FakeMachine,
  tries: Readonly<Record<string, number>>,
) {
  machine.stumble(tries);
  const { code, stderr } = await bootstrap(machine);
  const left = Object.values(machine.stumblesLeft).filter((times) => times > 0);
  return { code, stderr, left };
}
export const endedWell = { code: 0, stderr: "", left: [] };

export const asInitial = { vmId: controlPlane.initialControlPlane! };
export const hostsEntry = `127.0.0.1 ${controlPlane.apiName} # zoned`;
export const lastLine = ({ stderr }: Outcome) => stderr.trim().split("\n").at(-1);
