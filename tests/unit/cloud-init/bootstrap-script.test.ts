import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { bootstrapText, Payload } from "../../../components/machine/payload";
import { FakeMachine } from "../../support/fake-machine";
import { installed, Outcome } from "../../support/tools";

jest.setTimeout(120_000);

const caKey = "-----BEGIN PRIVATE KEY-----\nsecret of the CA\n";
const token = "abcdef.0123456789abcdef";
const base64 = (text: string) => Buffer.from(text).toString("base64");

const controlPlane: Payload = {
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
  modules: ["ip_vs", "ip_vs_wlc"],
  files: [
    { path: "/etc/kubernetes/pki/ca.crt", mode: "0644", content: "the CA" },
    { path: "/etc/kubernetes/pki/ca.key", mode: "0600", content: caKey },
    { path: "/etc/kubernetes/pki/etcd/ca.crt", mode: "0644", content: "etcd's CA" },
    { path: "/etc/zoned/kubeadm-init.yaml", mode: "0600", content: "init" },
    { path: "/etc/zoned/kubeadm-join.yaml", mode: "0600", content: "join" },
    { path: "/etc/zoned/kubeadm-reset.yaml", mode: "0600", content: "reset" },
  ],
};

const worker: Payload = {
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

const someoneElse = "22222222-aaaa-4bbb-8ccc-000000000002";

interface Member {
  readonly ID: string;
  readonly name?: string;
  readonly peerURLs: readonly string[];
  readonly clientURLs?: readonly string[];
  readonly isLearner?: boolean;
}

/** What a machine's surroundings are; each is a file that the fakes read. */
interface World {
  readonly vmId: string;
  readonly api: "answers" | "silent" | "foreign";
  /** How many of its first calls fail. */
  readonly failing: Partial<Record<"init" | "join" | "member-list", number>>;
  readonly members: readonly Member[];
  /** A Node of this machine's name exists. */
  readonly node: boolean;
  readonly ready: string;
}

const peer = {
  ID: "18446744073709551615",
  name: "zoned-test-cp-1",
  peerURLs: ["https://172.16.1.4:2380"],
  clientURLs: ["https://172.16.1.4:2379"],
};
const stale = {
  ID: "9007199254740993",
  name: controlPlane.machine,
  peerURLs: ["https://172.16.2.5:2380"],
};

const calm: World = {
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

type Listed = ReturnType<typeof listedNode> | ReturnType<typeof listedPod>;

const controlPlaneLabel = "node-role.kubernetes.io/control-plane";

const listedNode = (name: string, ready = "True", label = controlPlaneLabel) => ({
  kind: "Node",
  metadata: { name, labels: { [label]: "" } },
  status: {
    conditions: [
      { type: "DiskPressure", status: "False" },
      { type: "Ready", status: ready, reason: "KubeletNotReady", message: "the runtime is down" },
    ],
  },
});

const listedPod = (name: string, ready = "True") => ({
  kind: "Pod",
  metadata: { name },
  status: { conditions: [{ type: "Ready", status: ready }] },
});

const staticPods = (node: string) =>
  ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"].map((component) =>
    listedPod(`${component}-${node}`),
  );

/** What the kubelet of this machine says of its own static pods, of which one may not be Ready yet. */
const kubeletPods = (starting?: string) =>
  JSON.stringify({
    items: staticPods(controlPlane.machine).map(({ metadata: { name } }) =>
      listedPod(name, name === `${starting}-${controlPlane.machine}` ? "False" : "True"),
    ),
  });

/** Nodes and pods of a cluster that is well, but for this machine and a worker. */
const allWell: readonly Listed[] = [
  listedNode(controlPlane.machine, "False"),
  listedPod(`etcd-${controlPlane.machine}`, "False"),
  listedNode(worker.machine, "False", "kubernetes.io/os"),
  listedNode(peer.name),
  ...staticPods(peer.name),
];

/** The cluster with other objects of these names, and without those that are `undefined`. */
const clusterWith = (changes: Readonly<Record<string, Listed | undefined>>): readonly Listed[] =>
  allWell
    .map((one) => (one.metadata.name in changes ? changes[one.metadata.name] : one))
    .filter((one) => one !== undefined);

const fails = (what: string) =>
  `left=$(cat "$root/failing/${what}" 2>/dev/null || echo 0)
  if ((left > 0)); then echo $((left - 1)) >"$root/failing/${what}"; echo "${what} went wrong" >&2; exit 7; fi`;

const answers = mkdtempSync(join(tmpdir(), "zoned-jq-"));
afterAll(() => rmSync(answers, { recursive: true }));

const programs = {
  // The real one compiles its own library at each start, which takes longer than all else here: it is
  // asked the same once.
  jq: `input=$(cat; echo .)
    read -r digest _ < <(printf '%s\\0' "$@" "$input" | sha256sum)
    answer=${answers}/$digest
    if [[ ! -e $answer ]]; then
      code=0; ${installed("jq", "jq")} "$@" <<<"\${input%.}" >"$answer.$$" || code=$?
      ((code == 0)) || { cat "$answer.$$"; exit "$code"; }
      mv "$answer.$$" "$answer"
    fi
    cat "$answer"`,
  "cloud-init": "echo 'status: running'",
  "first-boot": "",
  renewal: "",
  // Says that the kubelet's certificate is of the CA that signs.
  openssl: "",
  systemctl: "",
  modprobe: "",
  curl: `case $* in
    # The metadata service refuses what comes without this header.
    *169.254.169.254*) [[ $* == *"--header Metadata:true"* && $* == *"--noproxy *"* && $* == *"format=text" ]] || exit 22
      cat "$root/vm-id" ;;
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
    *"/leases/"*) TZ=UTC0 printf -v now '%(%FT%TZ)T' -1
      printf '{"spec": {"renewTime": "%s"}}' "$(cat "$root/lease" 2>/dev/null || echo "$now")" ;;
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

const machines: FakeMachine[] = [];
afterEach(() => machines.splice(0).forEach((machine) => machine.remove()));

const script = "/script.sh";

const ship = (machine: FakeMachine, payload: Payload) =>
  machine.ship("bootstrap.sh", script, `${JSON.stringify(payload)}\n`);

const machineIn = (world: Partial<World> = {}, payload: Payload = controlPlane) => {
  const machine = new FakeMachine(programs);
  machines.push(machine);
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
  machine.write("/proc/sys/kernel/random/boot_id", "b0071d00-0000-4000-8000-000000000001\n");
  machine.write("/var/lib/zoned/first-boot.done", "");
  machine.write("/opt/zoned/first-boot.sh", '#!/bin/bash\nfirst-boot "$@"\n', 0o700);
  machine.write("/opt/zoned/renew-certificates.sh", 'renewal "$@"\n', 0o700);
  ship(machine, payload);
  return machine;
};

/** Lets kubeadm's join do this first. */
const beforeJoining = (machine: FakeMachine, commands: string): void =>
  machine.program("kubeadm", programs.kubeadm.replace("join*)", `join*) ${commands};`));

const bootstrap = (machine: FakeMachine, env: Record<string, string> = {}) =>
  machine.run(script, [], env);

/** What was done to the world, in order; questions left out. */
const deeds = (machine: FakeMachine): string[] =>
  machine.calls.flatMap(([program, ...args]) => {
    const line = args.join(" ");
    if (program === "kubeadm")
      return /^(init --|join|reset)/.exec(line) ? [line.split(" ")[0]!] : [];
    if (program === "kubectl") return line.includes("delete node") ? ["delete node"] : [];
    return program === "curl" && line.includes("member/remove") ? ["remove member"] : [];
  });

/** Runs the step on a machine where functions fail so often in a row before they do not. */
async function bootstrapDespite(machine: FakeMachine, tries: Readonly<Record<string, number>>) {
  machine.stumble(tries);
  const { code, stderr } = await bootstrap(machine);
  const left = Object.values(machine.stumblesLeft).filter((times) => times > 0);
  return { code, stderr, left };
}
const endedWell = { code: 0, stderr: "", left: [] };

const asInitial = { vmId: controlPlane.initialControlPlane! };
const hostsEntry = `127.0.0.1 ${controlPlane.apiName} # zoned`;
const lastLine = ({ stderr }: Outcome) => stderr.trim().split("\n").at(-1);

it("trusts nobody who speaks for the API but this cluster's CA, and goes past every proxy", async () => {
  const machine = machineIn();

  expect((await bootstrap(machine)).code).toBe(0);

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
  ])("does $does when it is $who and the API $world.api", async ({ world, action: does, ends }) => {
    const machine = machineIn(world);

    expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });

    expect(deeds(machine)).toEqual(does);
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

  it("means itself by the API's name only after it has joined", async () => {
    const machine = machineIn();
    await bootstrap(machine);

    expect(machine.read("/hosts-at-join")).not.toContain("# zoned");
    expect(machine.read("/etc/hosts")).toContain(hostsEntry);
  });

  it("joins with a credential of its own making that ends soon", async () => {
    const machine = machineIn();
    await bootstrap(machine);

    expect(machine.callsOf("kubeadm")).toContain(
      "kubeconfig user --config /etc/zoned/kubeadm-init.yaml --client-name zoned:zoned-test-cp-2 --validity-period 2h " +
        "--org kubeadm:cluster-admins,system:bootstrappers:kubeadm:default-node-token",
    );
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
    const noted = machine.callsOf("kubectl").filter((call) => call.includes("annotate"));
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

  it("installs the version of the cluster on a machine that was made for another", async () => {
    const machine = machineIn();
    machine.program(
      "kubeadm",
      `[[ $1 != version || -e $root/installed ]] || { echo v9.9.8; exit; }\n${programs.kubeadm}`,
    );
    machine.program("first-boot", '[[ $1 != install_kubernetes ]] || touch "$root/installed"');

    expect((await bootstrap(machine)).code).toBe(0);

    expect(machine.callsOf("first-boot").slice(1, 4)).toEqual([
      "add_package_source",
      "install_kubernetes",
      "pull_images",
    ]);
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

  it("leaves what renews its certificates: the timer, and this script without its payload", async () => {
    const machine = machineIn();
    expect((await bootstrap(machine)).code).toBe(0);

    expect(machine.callsOf("systemctl")).toEqual([
      "daemon-reload",
      "enable --now zoned-certificates.timer",
    ]);
    expect(machine.read("/opt/zoned/bootstrap.sh")).toBe(bootstrapText());
    expect(machine.read("/var/lib/zoned/variables")).toContain(`machine=${controlPlane.machine}\n`);
    expect(machine.callsOf("renewal")).toEqual(["report"]);
  });

  it("knows a member that never started by its address", async () => {
    const machine = machineIn({ members: [peer, { ...stale, name: undefined }] });

    expect((await bootstrap(machine)).code).toBe(0);

    expect(JSON.parse(machine.read("/members")).members).toEqual([peer]);
  });

  it("asks the others' etcd, and not the one that it may be running itself", async () => {
    const machine = machineIn();
    await bootstrap(machine);

    const joined = machine.calls.findIndex(([name, verb]) => name === "kubeadm" && verb === "join");
    const asked = machine.calls
      .slice(0, joined)
      .map((words) => words.join(" "))
      .filter((call) => call.includes("/v3/cluster/"));

    expect(asked.length).toBeGreaterThan(0);
    expect(asked.filter((call) => !call.includes("https://172.16.1.4:2379/"))).toEqual([]);
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

describe("a worker", () => {
  const workerIn = (world: Partial<World> = {}) => machineIn(world, worker);

  it("joins, and asks neither for its identity nor for etcd", async () => {
    const machine = workerIn();

    expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });

    expect(deeds(machine)).toEqual(["join"]);
    expect(machine.callsOf("curl").join()).not.toMatch(/169\.254|:2379/);
  });

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
  const member = async (world: Partial<World> = {}) => {
    const machine = machineIn({}, payload);
    await bootstrap(machine);
    machine.write("/api", world.api ?? calm.api);
    machine.write("/ready", world.ready ?? calm.ready);
    machine.forgetCalls();
    ship(machine, payload);
    return machine;
  };

  it("changes nothing", async () => {
    const machine = await member();
    const before = ["etc", "var/lib"].flatMap((folder) => contents(join(machine.root, folder)));

    expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });

    expect(deeds(machine)).toEqual([]);
    expect(machine.callsOf("kubeadm")).toEqual([]);
    expect(["etc", "var/lib"].flatMap((folder) => contents(join(machine.root, folder)))).toEqual(
      before,
    );
  });

  it("is not reset when it is not well, and the step says what it waited for", async () => {
    const machine = await member({ ready: "False KubeletNotReady the runtime is down" });

    const outcome = await bootstrap(machine, { HANGS: "await_node" });

    expect(deeds(machine)).toEqual([]);
    expect(outcome.stderr.trim().split("\n").slice(-2)).toEqual([
      `node ${payload.machine}: Ready is False KubeletNotReady the runtime is down`,
      'step "node" failed with exit code 124',
    ]);
  });

  it("is looked at until it is Ready", async () => {
    const machine = await member({ ready: "False KubeletNotReady" });
    machine.program("sleep", 'echo "True KubeletReady" >"$root/ready"');

    expect((await bootstrap(machine)).code).toBe(0);

    const looks = machine.callsOf("curl").filter((call) => call.includes("/api/v1/nodes/"));
    expect(looks).toHaveLength(2);
  });

  it("asks nobody whether it is Ready while it has no pod network, without which it cannot be", async () => {
    const machine = await member();
    machine.removeFile("/etc/cni/net.d/10-it.conflist");

    const outcome = await bootstrap(machine, { HANGS: "await_node" });

    expect(outcome.stderr).toContain(`node ${payload.machine}: no pod network yet`);
    expect(machine.callsOf("curl").filter((call) => call.includes("/nodes/"))).toEqual([]);
  });

  it("is well only if its kubelet has reported since, whatever the node's condition still says", async () => {
    const machine = await member();
    machine.write("/lease", "2020-01-01T00:00:00.000000Z");

    const outcome = await bootstrap(machine, { HANGS: "await_node" });

    expect(outcome.stderr).toContain("the kubelet last reported at 2020-01-01T00:00:00.000000Z");
  });
});

describe("a failure", () => {
  it("ends with the log's end, the step and its exit code, in the 4 KB that Azure shows", async () => {
    const machine = machineIn({ failing: { join: 100 } }, worker);
    beforeJoining(machine, "seq 100000");

    const outcome = await bootstrap(machine);

    expect(outcome.code).toBe(7);
    expect(lastLine(outcome)).toBe('step "kubeadm join" failed with exit code 7');
    expect(Buffer.byteLength(outcome.stderr)).toBeLessThan(4096);
    expect(outcome.stdout).toContain("exit code 7, next try");
    expect(outcome.stderr).toContain("\n100000\njoin went wrong\n");
    expect(
      outcome.stdout.split("\n").filter((line) => !/^(\S+Z bootstrap: .*)?$/.test(line)),
    ).toEqual([]);
  });

  it.each<[string, Partial<World>, Payload, Record<string, number>]>([
    ["a worker that joins", {}, worker, { load_modules: 1, match_version: 3, join: 5 }],
    [
      "a control plane that joins",
      {},
      controlPlane,
      { load_modules: 1, match_version: 3, join: 3, keep_certificates: 2 },
    ],
    [
      "the initial control plane",
      { ...asInitial, api: "silent" },
      controlPlane,
      { load_modules: 1, match_version: 3, initialize: 1, keep_certificates: 2 },
    ],
  ])(
    "of %s ends nothing before it has come this often in a row",
    async (_, world, payload, tries) => {
      expect(await bootstrapDespite(machineIn(world, payload), tries)).toEqual(endedWell);
    },
  );

  it("is reported, with its step, also where the step has filled the disk", async () => {
    const machine = machineIn();
    machine.mount("/var", 256);
    machine.write("/var/lib/zoned/first-boot.done", "");
    machine.program("modprobe", 'yes >>"$root/var/log/zoned.log"');

    const outcome = await bootstrap(machine);

    expect(outcome.stderr).toContain("--- end of /var/log/zoned.log");
    expect(outcome.stderr).toMatch(/^no space left on device: .+ 256K +256K .+zoned:osDiskSizeGb/m);
    expect(lastLine(outcome)).toBe('step "kernel modules" failed with exit code 1');
  });

  it("names the module that kube-proxy's mode needs and the kernel has not", async () => {
    const machine = machineIn();
    machine.program("modprobe", "[[ $1 != ip_vs_wlc ]]");

    const outcome = await bootstrap(machine);

    expect(outcome.stderr).toContain("has no module ip_vs_wlc");
    expect(outcome.stderr).toContain("zoned:proxyScheduler");
    expect(lastLine(outcome)).toBe('step "kernel modules" failed with exit code 1');
    expect(deeds(machine)).toEqual([]);
  });

  it("looks for the modules of another mode on a machine that is a member, and keeps them for every boot", async () => {
    const machine = machineIn({ api: "answers" });
    expect((await bootstrap(machine)).code).toBe(0);
    machine.program("modprobe", "[[ $1 != ip_vs_sh ]]");

    ship(machine, { ...controlPlane, modules: ["ip_vs", "ip_vs_sh"] });
    const missing = await bootstrap(machine);
    expect(missing.stderr).toContain("has no module ip_vs_sh");
    expect(machine.read("/etc/modules-load.d/zoned-proxy.conf")).toBe("ip_vs\nip_vs_wlc\n");

    ship(machine, { ...controlPlane, modules: ["nf_tables"] });
    expect((await bootstrap(machine)).code).toBe(0);
    expect(machine.read("/etc/modules-load.d/zoned-proxy.conf")).toBe("nf_tables\n");
    expect(deeds(machine)).toEqual(["join"]);
  });

  it("gives all steps together 85 of the 90 minutes that Azure gives the script", async () => {
    const machine = machineIn({}, worker);
    machine.program("modprobe", 'echo "$ZONED_DEADLINE" >"$root/deadline"');
    const before = Math.floor(Date.now() / 1000);

    await bootstrap(machine);

    const minutes = (Number(machine.read("/deadline")) - before) / 60;
    expect(minutes).toBeGreaterThanOrEqual(85);
    expect(minutes).toBeLessThan(88);
  });

  it("comes before Azure's own time limit, which would say nothing", async () => {
    const machine = machineIn({ api: "silent" }, worker);

    const outcome = await bootstrap(machine, {
      ZONED_DEADLINE: `${Math.floor(Date.now() / 1000) + 1}`,
    });

    expect(lastLine(outcome)).toMatch(/^step ".*" failed with exit code 124$/);
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

    expect((await bootstrap(machine)).code).toBe(0);

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

    expect((await bootstrap(machine)).code).toBe(0);

    expect(machine.has("/ran")).toBe(true);
  });

  // What it prints where nothing runs any more (cloud-init status --help).
  it.each(["done", "error", "degraded", "disabled"])(
    "runs again when a reboot broke it off (%s)",
    async (status) => {
      const machine = unbooted();
      machine.program("cloud-init", `echo "status: ${status}"`);

      expect((await bootstrap(machine)).code).toBe(0);

      expect(machine.has("/ran")).toBe(true);
    },
  );
});

it("lets no upgrade in the background begin while it is at work", async () => {
  const machine = machineIn();
  await bootstrap(machine);

  expect(machine.callsOf("first-boot")).toEqual([
    "pause_upgrades",
    "remove_package_source",
    "resume_upgrades",
  ]);
});

describe("secrets", () => {
  it("that came with a step are gone from its script when it has failed", async () => {
    const machine = machineIn({ failing: { join: 9 } });

    expect((await bootstrap(machine)).code).not.toBe(0);

    expect(machine.read(script)).not.toContain("secret of the CA");
    expect(machine.callsOf("first-boot").at(-1)).toBe("resume_upgrades");
  });

  it.each([controlPlane, worker])("stand on no command line ($role)", async (payload) => {
    const machine = machineIn({ failing: { join: 1 }, node: true }, payload);
    await bootstrap(machine);

    const words = machine.calls.flat().join("\n");

    expect(words).toContain("kubeadm");
    expect(words).not.toMatch(/secret of the CA|abcdef\.|PRIVATE KEY|"files"/);
  });

  it("that kubeadm prints of its own accord stand in no log", async () => {
    const machine = machineIn({ ...asInitial, api: "silent" });
    const prints =
      '[[ $* == *--skip-token-print* ]] || echo "kubeadm join --token abcdef.of-its-own";';
    machine.program("kubeadm", programs.kubeadm.replace("    init*)", `    init*) ${prints}`));

    const { code, stdout, stderr } = await bootstrap(machine);

    expect(code).toBe(0);
    expect(stdout + stderr + machine.read("/var/log/zoned.log")).not.toContain("abcdef.of-its-own");
  });

  it("are written for root alone", async () => {
    const machine = machineIn();
    beforeJoining(
      machine,
      'stat -c "%a %n" "$root"/etc/zoned/* "$root"/etc/kubernetes/pki/*.key >"$root/modes"',
    );
    await bootstrap(machine);

    const modes = machine.read("/modes").trim().split("\n");

    expect(modes.length).toBeGreaterThan(4);
    expect(modes.filter((line) => !line.startsWith("600 "))).toEqual([]);
    expect(statSync(join(machine.root, "var/log/zoned.log")).mode & 0o777).toBe(0o600);
  });

  it("that only the join needed are gone after it, also from the script", async () => {
    const machine = machineIn();
    await bootstrap(machine);

    expect(machine.has("/etc/zoned/discovery.conf")).toBe(false);
    expect(machine.has("/etc/zoned/kubeadm-init.yaml")).toBe(false);
    expect(machine.read("/etc/kubernetes/pki/ca.key")).toBe(caKey);
    expect(machine.read(script)).toBe(bootstrapText());
    expect((await bootstrap(machine)).stderr).toContain("run `pulumi up` for more");
  });
});

describe("an upgrade", () => {
  const next = { kubernetesVersion: "9.9.10", configuration: "later" };

  /** A member whose node has these pods, with what the script does to machine and cluster in turn. */
  function memberIn(payload: Payload, pods: readonly object[] = []) {
    const machine = machineIn({}, payload);
    machine.write("/var/lib/zoned/joined", "joined\n");
    machine.write("/var/lib/zoned/configuration", "now\n");
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
      'case $* in *jsonpath*) cat "$root/annotation" ;; *cluster-info*) ;; *annotate*) echo "annotate" >>"$root/order" ;; *"replace --filename -"*) cat >/dev/null ;; *) cat "$root/objects" ;; esac',
    );
    machine.write("/annotation", "");
    machine.write("/objects", JSON.stringify({ items: allWell }));
    machine.program(
      "curl",
      `case $* in
        *eviction*) echo "evict" >>"$root/order"; echo '{"items":[]}' >"$root/pods"; printf '{}\\n201' ;;
        *PATCH*) [[ $* == *'"unschedulable": true'* ]] && echo cordon >>"$root/order" || echo uncordon >>"$root/order" ;;
        *"/api/v1/pods"*) cat "$root/pods" ;;
        *"/leases/"*) TZ=UTC0 printf '{"spec": {"renewTime": "%(%FT%TZ)T"}}' -1 ;;
        *"/api/v1/nodes/"*) echo '{"metadata":{"annotations":{"zoned/cordoned-for-upgrade":"x"}},"spec":{},"status":{"conditions":[{"type":"Ready","status":"True"}]}}' ;;
        *10250/pods*) echo kubelet >>"$root/order"; { cat "$root/kubelet-pods" || echo '${kubeletPods()}'; rm -f "$root/kubelet-pods"; } 2>/dev/null ;;
        *2379/health*) echo '{"health":"true"}' ;;
        *maintenance/alarm*) echo '{}' ;;
        *member/list*) echo '${JSON.stringify({ members: [peer] })}' ;;
      esac`,
    );
    return machine;
  }

  const order = (machine: FakeMachine) => machine.read("/order").trim().split("\n");
  const pod = (name: string, owner?: string) => ({
    metadata: { namespace: "default", name, ...(owner && { ownerReferences: [{ kind: owner }] }) },
    status: { phase: "Running" },
  });

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
    expect(limits.map((call) => Number(call.split(" ")[1]))).toEqual([17 * 60]);
  });

  it.each([
    ["kubeadm", "packages", 2],
    ["kubelet", "kubelet", 6],
  ])(
    "goes no further where %s is of another version after its installation",
    async (program, step, done) => {
      const machine = memberIn({ ...worker, ...next });
      machine.program(
        program,
        machine
          .read(`/programs/${program}`)
          .replace(/^#!.*\n/, "")
          .replace(`$(cat "$root/version-of-${program}")`, "9.9.9"),
      );

      const outcome = await bootstrap(machine);

      expect(lastLine(outcome)).toBe(`step "${step}" failed with exit code 1`);
      expect(outcome.stderr).toMatch(/ is of version v9\.9\.9 .*v9\.9\.10/);
      const tried = order(machine);
      expect(tried.slice(tried.lastIndexOf(`first-boot install_${program}`) + 1)).toEqual([]);
      expect([...new Set(tried)].length).toBe(done);
    },
  );

  it("leaves a node cordoned that somebody else has cordoned", async () => {
    const machine = memberIn({ ...worker, ...next }, [pod("web")]);
    const curl = machine.read("/programs/curl").replace(/^#!.*\n/, "");
    machine.program(
      "curl",
      `${curl.replace('{"zoned/cordoned-for-upgrade":"x"}},"spec":{}', '{}},"spec":{"unschedulable":true}')}`,
    );

    expect((await bootstrap(machine)).code).toBe(0);
    expect(order(machine)).toContain("evict");
    expect(order(machine).join()).not.toContain("cordon");
  });

  it("begins on a control plane that is well only when all others are, and saves etcd first", async () => {
    const saving = { ...controlPlane, ...next, tasks: ["snapshots" as const] };
    const save = (machine: FakeMachine, code = 0) =>
      machine.write(
        "/opt/zoned/etcd-snapshot.sh",
        `#!/bin/bash\necho "snapshot $*" >>"${machine.root}/order"; echo "no space" >&2; exit ${code}\n`,
        0o700,
      );
    const sick = JSON.stringify({
      items: clusterWith({ [peer.name]: listedNode(peer.name, "False") }),
    });
    const well = memberIn(saving);
    const unsaved = memberIn(saving);
    const besideSick = memberIn(saving);
    const halfDone = memberIn(saving);
    [well, besideSick, halfDone].forEach((machine) => save(machine));
    save(unsaved, 1);
    for (const machine of [besideSick, halfDone]) {
      machine.write("/objects", sick);
      machine.write("/order", "");
    }
    const curl = halfDone.read("/programs/curl").replace(/^#!.*\n/, "");
    halfDone.program(
      "curl",
      `[[ $* != *2381/health* ]] || grep --quiet kubelet-start "$root/order" || exit 22\n${curl}`,
    );

    expect((await bootstrap(well)).code).toBe(0);
    expect(order(well).slice(0, 6)).toEqual([
      "first-boot add_package_source",
      "first-boot install_kubeadm",
      "first-boot pull_images",
      "snapshot save any",
      "cordon",
      "kubeadm init phase certs",
    ]);
    expect((await bootstrap(unsaved)).stderr).toMatch(/\nno space\nstep "snapshot" failed/);
    expect(order(unsaved).join()).not.toMatch(/cordon|upgrade/);
    expect(lastLine(await bootstrap(besideSick, { HANGS: "await_peers" }))).toBe(
      'step "other control planes" failed with exit code 124',
    );
    expect(besideSick.read("/order")).toBe("");
    await bootstrap(halfDone, { HANGS: "await_peers" });
    expect(order(halfDone)).toContain("kubeadm upgrade node --config");
  });

  it("has kubeadm sign the API server's certificate anew where it lacks a name, and keeps it else", async () => {
    const certificate = "/etc/kubernetes/pki/apiserver.crt";
    const [lacking, sound] = [
      memberIn({ ...controlPlane, ...next }),
      memberIn({ ...controlPlane, ...next }),
    ];
    for (const machine of [lacking, sound]) machine.write(certificate, "of before");
    lacking.program(
      "kubeadm",
      `case $* in version*) echo v9.9.10 ;;
        "init phase certs apiserver "*) [[ ! -e $root${certificate} ]] || exit 1; echo new >"$root${certificate}" ;;
      esac`,
    );

    expect((await bootstrap(lacking)).code).toBe(0);
    expect((await bootstrap(sound)).code).toBe(0);
    expect(lacking.read(certificate)).toBe("new\n");
    expect(sound.read(certificate)).toBe("of before");
  });

  it("fetches images before the drain also where an earlier try got no further than kubeadm", async () => {
    const machine = memberIn({ ...worker, ...next }, [pod("web")]);
    machine.write("/version-of-kubeadm", "9.9.10");

    expect((await bootstrap(machine)).code).toBe(0);
    expect(order(machine).slice(0, 2)).toEqual(["first-boot pull_images", "cordon"]);
  });

  it("gives the cluster its configuration once, by the first control plane", async () => {
    const clusterConfiguration = "of all";
    const first = memberIn({ ...controlPlane, ...next, clusterConfiguration });
    const second = memberIn({ ...controlPlane, ...next, clusterConfiguration });
    second.write("/annotation", clusterConfiguration);

    expect((await bootstrap(first)).code).toBe(0);
    expect((await bootstrap(second)).code).toBe(0);
    const upgrades = (machine: FakeMachine) =>
      order(machine).filter((line) => /upload-config|upgrade|annotate/.test(line));
    expect(upgrades(first)).toEqual([
      "kubeadm init phase upload-config",
      "kubeadm upgrade apply --yes",
      "annotate",
    ]);
    expect(upgrades(second)).toEqual(["kubeadm upgrade node --config"]);
  });

  it.each([
    ["has not yet read their manifests", '{"items":[]}'],
    ["starts one of them anew", kubeletPods("etcd")],
  ])("waits for the static pods while the upgraded kubelet %s", async (_, pods) => {
    const machine = memberIn({ ...controlPlane, ...next });
    machine.write("/kubelet-pods", pods);

    expect((await bootstrap(machine)).code).toBe(0);
    expect(order(machine).slice(-4)).toEqual([
      "kubeadm init phase kubelet-start",
      "kubelet",
      "kubelet",
      "uncordon",
    ]);
    expect(machine.read("/var/log/zoned.log")).toContain(
      `not Ready for the kubelet: etcd-${controlPlane.machine}`,
    );
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
    const kubectl = machine.read("/programs/kubectl");
    machine.program(
      "kubectl",
      `case $* in */metrics*) cat "$root/loaded"; echo '${metric("other keys")}' >"$root/loaded"; exit ;; esac\n${kubectl.replace(/^#!.*\n/, "")}`,
    );

    expect((await bootstrap(machine)).code).toBe(0);
    expect(machine.read(path)).toBe("other keys");
    expect(machine.callsOf("kubectl").filter((call) => call.includes("/metrics"))).toHaveLength(
      asked,
    );
    expect(machine.read("/var/log/zoned.log")).not.toContain("other keys");
  });

  it("keeps kubeadm's copy of etcd's data until the member is well again, and no longer", async () => {
    const copy =
      "/etc/kubernetes/tmp/kubeadm-backup-etcd-2026-11-24-02-06-21/etcd/member/wal/0.wal";
    const machine = memberIn({ ...controlPlane, ...next });
    machine.write(copy, "");
    machine.write("/broken", "");
    machine.program(
      "kubeadm",
      '[[ $1 != version ]] || echo v9.9.10; [[ $1 != upgrade || ! -e "$root/broken" ]]',
    );

    expect((await bootstrap(machine)).stderr).toContain('step "kubeadm upgrade" failed');
    expect(machine.has(copy)).toBe(true);
    machine.removeFile("/broken");
    ship(machine, { ...controlPlane, ...next });
    expect((await bootstrap(machine)).code).toBe(0);
    expect(machine.has(copy)).toBe(false);
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

      expect((await bootstrap(machine)).code).toBe(0);
      expect(machine.read("/etc/kubernetes/pki/ca.crt")).toBe("the CA");
      expect([machine.read("/before"), machine.read(conf)]).toEqual([trusting, trusting]);
    },
  );

  it("goes back to the one CA that comes with it where a change of CAs was taken back half-way", async () => {
    const pem = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n`;
    const machine = memberIn({ ...controlPlane, configuration: "later" });
    machine.write("/etc/kubernetes/pki/ca.crt", pem("the CA") + pem("another CA"));

    expect((await bootstrap(machine)).code).toBe(0);
    // The controller manager ends where it is to sign with several.
    expect(machine.read("/etc/kubernetes/pki/ca.crt")).toBe("the CA");
  });

  it("is undone where it has failed half-way and its change is taken back", async () => {
    const machine = memberIn({ ...worker, ...next });
    machine.write("/order", "");
    machine.write("/broken", "");
    const kubeadm = machine.read("/programs/kubeadm").replace(/^#!.*\n/, "");
    machine.program("kubeadm", `${kubeadm}\n[[ $* != *kubelet-start* || ! -e "$root/broken" ]]`);
    expect((await bootstrap(machine)).stderr).toContain('step "kubelet" failed');

    machine.removeFile("/broken");
    machine.write("/order", "");
    machine.write("/wanted", worker.kubernetesVersion);
    ship(machine, worker);
    expect((await bootstrap(machine)).code).toBe(0);

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

  it("takes no patch that came with an earlier step, and not with this one", async () => {
    const patch = (name: string) => ({
      path: `/etc/zoned/patches/${name}`,
      mode: "0600",
      content: "",
    });
    const files = [...controlPlane.files, patch("corednsdeployment.yaml")];
    const machine = memberIn({ ...controlPlane, configuration: "later", files });
    machine.write(patch("etcd.yaml").path, "taken back");

    expect((await bootstrap(machine)).code).toBe(0);
    expect(readdirSync(join(machine.root, "etc/zoned/patches"))).toEqual([
      "corednsdeployment.yaml",
    ]);
  });

  it("leaves the CAs of a member as they are, unless other ones are ordered", async () => {
    const machine = memberIn({ ...controlPlane, configuration: "later" });

    expect((await bootstrap(machine)).code).toBe(0);
    expect(machine.read("/etc/kubernetes/pki/ca.crt")).toBe("the CA before");
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

    expect((await bootstrap(machine)).code).toBe(0);
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

  it("tells who is to join of the CAs, by the control plane that gives the cluster its configuration", async () => {
    const payload = { ...controlPlane, configuration: "later", clusterConfiguration: "of all" };
    const machine = memberIn({ ...payload, tasks: ["cas"] });
    const info = { data: { kubeconfig: "  certificate-authority-data: b2xk\n" } };
    const kubectl = machine.read("/programs/kubectl").replace(/^#!.*\n/, "");
    machine.program(
      "kubectl",
      `case $* in *"configmap cluster-info"*) echo '${JSON.stringify(info)}'; exit ;;
        *"--namespace kube-public replace"*) cat >"$root/published"; exit ;; esac\n${kubectl}`,
    );

    expect((await bootstrap(machine)).code).toBe(0);
    expect(JSON.parse(machine.read("/published"))).toEqual({
      data: { kubeconfig: `  certificate-authority-data: ${base64("the CA")}\n` },
    });
  });

  it("restarts pods of the namespaces kube-* when they get the new CAs, and not before", async () => {
    const machine = memberIn({ ...controlPlane, configuration: "now", tasks: ["restart-pods"] });
    const kubectl = machine.read("/programs/kubectl").replace(/^#!.*\n/, "");
    machine.program(
      "kubectl",
      `case $* in
        *kube-root-ca.crt*) echo asked >>"$root/order"; [[ $(wc -l <"$root/order") -lt 3 ]] || printf "the CA before"; exit ;;
        *"get namespaces"*) printf 'namespace/%s\\n' default kube-system kube-flannel; exit ;;
        *"get daemonsets,deployments"*) echo daemonset.apps/it; exit ;;
        *"rollout restart"*) echo "$*" >>"$root/order"; exit ;;
      esac\n${kubectl}`,
    );

    expect((await bootstrap(machine)).code).toBe(0);
    expect(order(machine).map((line) => line.replace(/^.*--namespace/, "in"))).toEqual([
      ...Array<string>(3).fill("asked"),
      "in kube-system rollout restart daemonset.apps/it",
      "in kube-flannel rollout restart daemonset.apps/it",
    ]);
  });

  it.each<[Payload["role"], Payload, Record<string, number>]>([
    [
      "worker",
      { ...worker, ...next },
      { upgrade_kubeadm: 3, upgrade_member: 1, upgrade_kubelet: 2, uncordon: 5 },
    ],
    [
      "control-plane",
      { ...controlPlane, ...next, tasks: ["snapshots", "rewrite-secrets"] },
      {
        ...{ upgrade_kubeadm: 3, upgrade_member: 1, upgrade_kubelet: 2, uncordon: 5 },
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
    machine.program(
      "kubectl",
      `case $* in *kube-root-ca.crt*) printf "the CA before"; exit ;; esac\n${machine
        .read("/programs/kubectl")
        .replace(/^#!.*\n/, "")}`,
    );

    expect(await bootstrapDespite(machine, tries)).toEqual(endedWell);
  });

  it("does nothing to a member that is what it shall be", async () => {
    const machine = memberIn({ ...worker, configuration: "now" });
    machine.write("/order", "");

    expect((await bootstrap(machine)).code).toBe(0);
    expect(machine.read("/order")).toBe("");
  });

  it("drains nothing where only the configuration differs", async () => {
    const machine = memberIn({ ...worker, configuration: "later" }, [pod("web")]);

    expect((await bootstrap(machine)).code).toBe(0);
    expect(order(machine).join()).not.toMatch(/evict|first-boot/);
    expect(order(machine)).toContain("kubeadm upgrade node --config");
  });

  it("leaves a node that cannot be drained in time as it was, and says what holds it", async () => {
    const machine = memberIn({ ...worker, ...next, drainMinutes: 0 }, [pod("web")]);
    const curl = machine.read("/programs/curl");
    machine.program(
      "curl",
      `case $* in *eviction*) printf '{"message":"Cannot evict pod as it would violate the budget.","details":{"causes":[{"message":"The disruption budget web needs 1 healthy pods and has 1 currently"}]}}\\n429'; exit ;; esac\n${curl.replace(/^#!.*\n/, "")}`,
    );

    const { code, stderr } = await bootstrap(machine);

    expect(code).not.toBe(0);
    expect(stderr).toContain("default/web: Cannot evict pod");
    expect(stderr).toContain("The disruption budget web needs 1 healthy pods");
    expect(order(machine)).toContain("uncordon");
    expect(order(machine)).not.toContain("kubeadm upgrade node --config");
  });
});

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

  const restoredIn = () => {
    const machine = machineIn({ ...asInitial, api: "silent", node: true }, restoring);
    machine.program("systemctl", "");
    machine.program(
      "etcdutl",
      'if [[ $2 == restore ]]; then mkdir -p "$root/var/lib/etcd/member"; fi',
    );
    machine.write("/etc/cni/net.d/10-it.conflist", "");
    return machine;
  };
  const said = ({ stdout }: Outcome) =>
    [...stdout.matchAll(/ bootstrap: (.+): done after/g)].map(([, step]) => step);

  it("is what the initial control plane initializes with, past all revisions that anybody has seen", async () => {
    const machine = restoredIn();
    const outcome = await bootstrap(machine);

    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    expect(said(outcome)).toContain("snapshot");
    expect(machine.read("/asked")).toMatch(/^fetch latest \S+\netcdutl \S+\n$/);
    const [, restore = ""] = machine.callsOf("etcdutl");
    expect(restore).toMatch(
      /^snapshot restore \S+ --data-dir \/var\/lib\/etcd --name zoned-test-cp-2 --initial-cluster zoned-test-cp-2=https:\/\/172\.16\.2\.5:2380 --initial-advertise-peer-urls https:\/\/172\.16\.2\.5:2380 --initial-cluster-token zoned-\S+ --bump-revision 1000000000 --mark-compacted$/,
    );
    expect(machine.callsOf("kubeadm").find((call) => call.startsWith("init --"))).toBe(
      "init --config /etc/zoned/kubeadm-init.yaml --skip-token-print --skip-phases addon/kube-proxy " +
        "--ignore-preflight-errors DirAvailable--var-lib-etcd",
    );
    expect(machine.read("/var/lib/zoned/joined")).toBe("joined\n");
    // It holds every Secret.
    const left = ["snapshot.db", "etcdutl"].filter((file) => machine.has(`/var/lib/zoned/${file}`));
    expect(left).toEqual([]);
  });

  it("is asked for once more where it did not come, and so is its timer", async () => {
    const machine = restoredIn();

    expect(
      await bootstrapDespite(machine, { fetch_snapshot: 1, initialize: 1, schedule_snapshots: 1 }),
    ).toEqual(endedWell);
  });

  it("knows control planes that are gone, which are forgotten while no kubelet speaks for this one", async () => {
    const machine = restoredIn();
    await bootstrap(machine);

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
    machine.program("etcdutl", "[[ $2 != status ]]");
    const outcome = await bootstrap(machine);

    expect(outcome.stderr).toMatch(
      /\netcdutl cannot read snapshot latest: name an older one .*\nstep "snapshot" failed with exit code 1\n$/,
    );
    expect(deeds(machine)).toEqual([]);
  });

  it("is restored again, from its beginning, where that has ended half-way", async () => {
    const machine = restoredIn();
    machine.write("/failing/init", "1");

    expect((await bootstrap(machine)).code).toBe(0);

    expect(deeds(machine)).toEqual(["init", "reset", "init", "delete node", "delete node"]);
    expect(machine.callsOf("etcdutl").filter((call) => call.includes("restore"))).toHaveLength(2);
  });

  it("is restored again where what it knows of old control planes could not be forgotten", async () => {
    const machine = restoredIn();
    const broken = 'case $* in *"delete node"*) mkdir "$root/tried" 2>/dev/null && exit 1 ;; esac';
    machine.program("kubectl", `${broken}\n${programs.kubectl}`);

    expect((await bootstrap(machine)).code).toBe(0);

    expect(deeds(machine).filter((deed) => !deed.startsWith("delete"))).toEqual([
      ...["init", "reset", "init"],
    ]);
  });

  it("is restored by nobody else, and not where an API answers", async () => {
    for (const world of [{ api: "answers" as const }, { ...asInitial, api: "answers" as const }]) {
      const machine = machineIn(world, restoring);
      expect((await bootstrap(machine)).code).toBe(0);
      expect(machine.has("/asked")).toBe(false);
      expect(deeds(machine)).toEqual(["join"]);
    }
  });

  it("is saved by a timer that comes with the payload, and goes when it does not come any more", async () => {
    const machine = machineIn({}, saving);
    const units = () =>
      machine.callsOf("systemctl").filter((call) => /reload|etcd-snapshot/.test(call));
    expect((await bootstrap(machine)).code).toBe(0);
    expect(units()).toEqual([
      "daemon-reload",
      "enable zoned-etcd-snapshot.timer",
      "restart zoned-etcd-snapshot.timer",
      "daemon-reload",
    ]);

    machine.forgetCalls();
    ship(machine, controlPlane);
    expect((await bootstrap(machine)).code).toBe(0);
    expect(units()).toEqual([
      "disable --now zoned-etcd-snapshot.timer",
      "daemon-reload",
      "daemon-reload",
    ]);
    expect(saved.filter(({ path }) => machine.has(path))).toEqual([]);
  });
});
