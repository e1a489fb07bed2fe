import { nextKeys, only, type RotationState } from "../../../components/kubeadm/rotations";
import {
  certificateAuthorities,
  certificateCheck,
  encryptionKeyGeneration,
  kubeletCertificates,
  renewals,
  serviceAccountKey,
} from "../credentials";
import type { Check, Expected } from "../check";
import { checkCluster, checksOf } from "../doctor";
import { issuerIn, type IssuerState } from "../cluster-state";
import { snapshots } from "../control-planes";
import { built, output } from "../../../tests/support/tools";
import {
  ago,
  healthyCluster,
  type FakeClusterState,
  now,
  serveCluster,
  threeByThree,
} from "./support/cluster-state";

/** What has failed, as `check: machine: what was seen`. */
const failures = (state: FakeClusterState, expected: Expected = threeByThree): string[] =>
  checksOf(expected, state).flatMap(({ name, problems }) =>
    problems.map(({ machine, saw }) => [name, ...(machine ? [machine] : []), saw].join(": ")),
  );
const notAsked = (state: FakeClusterState): string[] =>
  checksOf(threeByThree, state).flatMap((check) => (check.notAsked ? [check.name] : []));

const ofMachine = <T extends { metadata: { name: string } }>(objects: T[], name: string): T =>
  objects.find(({ metadata }) => metadata.name === name)!;
const without = <T extends { metadata: { name: string } }>(objects: T[], name: string): T[] =>
  objects.filter(({ metadata }) => metadata.name !== name);
const notReady = (message: string) => ({
  conditions: [{ type: "Ready", status: "False", message }],
});
const kubelet = (state: FakeClusterState, name: string, version: string) =>
  (ofMachine(state.nodes, name).status!.nodeInfo!.kubeletVersion = version);
const kernel = (state: FakeClusterState, name: string, version: string) =>
  (ofMachine(state.nodes, name).status!.nodeInfo!.kernelVersion = version);
const calico = (state: FakeClusterState, version: string) =>
  (state.daemonSets[0]!.spec = {
    template: { spec: { containers: [{ image: `quay.io/calico/node:${version}` }] } },
  });
const server = (state: FakeClusterState, name: string, version: string) =>
  (ofMachine(state.pods, `kube-apiserver-${name}`).spec!.containers!.at(-1)!.image =
    `registry.k8s.io/kube-apiserver:${version}`);
const nodeZone = "topology.kubernetes.io/zone";
const diskZone = "topology.disk.csi.azure.com/zone";
const all = ["cp-1", "cp-2", "cp-3", "workers-1", "workers-2", "workers-3"];

it("passes a healthy cluster, and asks everything of it", () => {
  expect(failures(healthyCluster())).toEqual([]);
  expect(notAsked(healthyCluster())).toEqual([]);
  expect(checksOf(threeByThree, healthyCluster())).toHaveLength(23);
});

it.each(["v3.27.4", "v3.32.1"])("has nothing against Canal %s on a new kernel", (version) => {
  const state = healthyCluster();
  calico(state, version);

  expect(failures(state)).toEqual([]);
});

it("says which machines have a containerd that the next Kubernetes does not take, and calls none of them ill", () => {
  const state = healthyCluster();
  const seen = () =>
    checksOf(threeByThree, state).find(({ name }) => name === "container runtimes");
  expect(seen()?.saw).toBe("containerd 2.2.1");
  for (const name of ["cp-2", "workers-1"])
    ofMachine(state.nodes, name).status!.nodeInfo!.containerRuntimeVersion = "containerd://1.7.28";

  expect(seen()).toMatchObject({
    saw: "containerd 1.7.28, containerd 2.2.1; Kubernetes 1.38 takes no containerd before 2.0: make cp-2, workers-1 anew before that",
    problems: [],
  });
});

it("says nothing of runtimes that no Node names", () => {
  const state = healthyCluster();
  for (const { status } of state.nodes) delete status!.nodeInfo!.containerRuntimeVersion;

  expect(notAsked(state)).toEqual(["container runtimes"]);
});

it("sees that API servers do not reach a kubelet that is well, and blames a dead one for its silence alone", () => {
  const state = healthyCluster();
  for (const kubelet of state.kubelets) kubelet.error = "dial tcp 172.16.1.4:10250: i/o timeout";
  ofMachine(state.nodes, "workers-2").status = notReady("no network");

  expect(failures(state)).toEqual([
    "Nodes: workers-2: its Node is not Ready: no network",
    ...all
      .filter((machine) => machine !== "workers-2")
      .map((machine) =>
        expect.stringMatching(
          `^kubelets' certificates: ${machine}: .* gets nothing from its kubelet.*i/o timeout$`,
        ),
      ),
  ]);
});

it.each([
  [
    "that it has",
    (state: FakeClusterState) => (ofMachine(state.nodes, "cp-2").status = notReady("unknown")),
  ],
  ["that is gone", (state: FakeClusterState) => (state.nodes = without(state.nodes, "cp-2"))],
])("restarts no silent machine that is off, with a Node %s", (_, change) => {
  const state = healthyCluster();
  change(state);

  const [problem] = checksOf(threeByThree, state).flatMap(({ problems }) => problems);

  expect(problem!.fix).toMatch(
    /what is off .* az vm start .*, and what runs is restarted with az vm restart$/,
  );
});

it("sees that an add-on of the outputs is gone, and how it is made anew", () => {
  const addOns = ["DaemonSet kube-system/kube-proxy", "DaemonSet kube-system/canal"];
  const state = healthyCluster();
  const problems = () =>
    checksOf({ ...threeByThree, addOns }, state).flatMap((check) => check.problems);

  expect(problems()).toEqual([
    { saw: "DaemonSet kube-system/canal is not there", fix: "pulumi up --refresh" },
  ]);

  state.daemonSets[1]!.metadata.name = "canal";
  state.daemonSets.shift();
  expect(problems()).toMatchObject([
    {
      saw: "DaemonSet kube-system/kube-proxy is not there",
      fix: expect.stringContaining("kubeadm init phase addon kube-proxy "),
    },
  ]);
});

it("says nothing of kernels that no Node names", () => {
  const state = healthyCluster();
  for (const { status } of state.nodes) delete status!.nodeInfo!.kernelVersion;

  expect(failures(state)).toEqual([]);
  expect(notAsked(state)).toEqual(["kernels"]);
});

it.each<[string, (state: FakeClusterState) => unknown, RegExp[]]>([
  [
    "a Node that is not Ready",
    (state) => (ofMachine(state.nodes, "workers-2").status = notReady("no network")),
    [/^Nodes: workers-2: its Node is not Ready: no network$/],
  ],
  [
    "a machine without a Node",
    (state) => (state.nodes = without(state.nodes, "workers-3")),
    [/^Nodes: workers-3: it has no Node$/],
  ],
  [
    "a Node without a machine",
    (state) => state.nodes.push({ ...state.nodes[3]!, metadata: { name: "workers-9" } }),
    [/^Nodes: Node workers-9 is no machine of this stack$/],
  ],
  [
    "a kubelet that is silent",
    (state) => (ofMachine(state.leases, "cp-2").spec!.renewTime = ago(61)),
    [/^Nodes: cp-2: its kubelet last renewed its lease 61 s ago/],
  ],
  [
    "a Node with another zone than its machine",
    (state) => (ofMachine(state.nodes, "workers-3").metadata.labels![nodeZone] = "southeastasia-1"),
    [/^zones: workers-3: .* southeastasia-1, expected southeastasia-3$/],
  ],
  [
    "a Node on which the disk driver has found no zone",
    (state) => (ofMachine(state.nodes, "workers-3").metadata.labels![diskZone] = ""),
    [/^zones for disks: workers-3: .* the zone \(none\), expected southeastasia-3/],
  ],
  [
    "a Node whose kubelet has no disk driver",
    (state) => delete ofMachine(state.nodes, "workers-3").metadata.labels![diskZone],
    [/^zones for disks: workers-3: its kubelet has not registered the disk driver/],
  ],
  [
    "one Node that has no zone",
    (state) => delete ofMachine(state.nodes, "workers-3").metadata.labels![nodeZone],
    [/^zones: workers-3: .*\(none\), expected southeastasia-3$/],
  ],
  [
    "a kubelet that is newer than an API server, which is an unfinished upgrade too",
    (state) => kubelet(state, "workers-1", "v1.37.0"),
    [
      /^versions: workers-1: its kubelet, v1\.37\.0, is newer than the API server v1\.36\.3/,
      /^versions: an upgrade has not finished: v1\.36\.3 \(.*\), v1\.37\.0 \(kubelet of workers-1\)$/,
    ],
  ],
  [
    "an upgrade that stopped between two control planes",
    (state) => server(state, "cp-1", "v1.36.4"),
    [/^versions: an upgrade has not finished: .*v1\.36\.4 \(kube-apiserver of cp-1\)$/],
  ],
  [
    "versions more than one minor apart",
    (state) => kubelet(state, "workers-1", "v1.34.9"),
    [/^versions: more than one minor version/, /^versions: an upgrade has not finished/],
  ],
  [
    "another version than the last update had",
    (state) => {
      for (const name of all) kubelet(state, name, "v1.36.4");
      for (const name of all.slice(0, 3)) server(state, name, "v1.36.4");
    },
    [/^versions: the cluster runs v1\.36\.4, .* had v1\.36\.3$/],
  ],
  ...["6.8.0-1063-azure", "6.8.0-1064-azure"].map(
    (version): [string, (state: FakeClusterState) => unknown, RegExp[]] => [
      `kernel ${version}, which loses NAT rules`,
      (state) => kernel(state, "workers-2", version),
      [new RegExp(`^kernels: workers-2: kernel ${version}: NAT rules .* do not stay`)],
    ],
  ),
  [
    "a kernel whose ip6tables knows no marks",
    (state) => kernel(state, "cp-1", "6.8.0-1025-azure"),
    [/^kernels: cp-1: kernel 6\.8\.0-1025-azure: ip6tables knows no marks/],
  ],
  [
    "an ipset of Canal's that cannot read the sets of a newer kernel",
    (state) => {
      calico(state, "v3.27.3");
      for (const name of all.slice(1)) kernel(state, name, "5.15.0-1070-azure");
    },
    [/^kernels: cp-1: kernel 6\.8\.0-1062-azure: sets .* before 3\.27\.4/],
  ],
  ...["kube-apiserver", "kube-controller-manager", "kube-scheduler"].map(
    (component): [string, (state: FakeClusterState) => unknown, RegExp[]] => [
      `a ${component} that is not ready`,
      (state) => (ofMachine(state.pods, `${component}-cp-3`).status = notReady("it is ill")),
      [new RegExp(`^control planes: cp-3: its ${component} is not ready: it is ill$`)],
    ],
  ),
  [
    "a control plane without a scheduler",
    (state) => (state.pods = without(state.pods, "kube-scheduler-cp-3")),
    [/^control planes: cp-3: it runs no kube-scheduler$/],
  ],
  [
    "that no controller manager leads",
    (state) => (state.manager = []),
    [/^control planes: kube-controller-manager holds no lease/],
  ],
  [
    "an etcd that is not ready, and how many more may fail",
    (state) => (ofMachine(state.pods, "etcd-cp-2").status = notReady("a learner")),
    [
      /^control planes: cp-2: its etcd is not ready: a learner$/,
      /^etcd members: 2 of 3 are ready, and one less is no majority$/,
    ],
  ],
  [
    "an etcd of a machine that is no control plane",
    (state) => {
      const pod = ofMachine(state.pods, "etcd-cp-1");
      state.pods.push({ ...pod, metadata: { ...pod.metadata, name: "etcd-cp-9" } });
    },
    [/^etcd members: etcd-cp-9 is the etcd of no control plane of this stack$/],
  ],
  [
    "members of etcd of two versions",
    (state) =>
      Object.assign(ofMachine(state.pods, "etcd-cp-2").spec!.containers!.at(-1)!, {
        image: "registry.k8s.io/etcd:3.6.14-0",
      }),
    [/^etcd version: etcd-cp-1 is 3\.7\.0, etcd-cp-2 is 3\.6\.14, etcd-cp-3 is 3\.7\.0$/],
  ],
  [
    "that etcd takes no writes",
    (state) => (state.writeError = "mvcc: database space exceeded"),
    [/^etcd takes writes: mvcc: database space exceeded$/],
  ],
  [
    "an etcd that is nearly full",
    (state) => (state.storageBytes = 6.6 * 1024 ** 3),
    [/^etcd size: 6758\.4 MiB of 8 GiB \(83 %\)/],
  ],
  [
    "a smaller quota than the program's",
    (state) => {
      ofMachine(state.pods, "etcd-cp-2").spec!.containers!.at(-1)!.command = [
        `--quota-backend-bytes=${32 * 1024 ** 2}`,
      ];
    },
    [/^etcd size: 40\.0 MiB of 0\.03125 GiB/],
  ],
  [
    "a DaemonSet with a pod that is not ready",
    (state) => (state.daemonSets[0]!.status!.numberReady = 5),
    [/^add-ons: DaemonSet kube-system\/kube-proxy has 5 of 6 pods ready$/],
  ],
  [
    "a Deployment whose roll-out has not finished",
    (state) => (state.deployments[0]!.status!.updatedReplicas = 1),
    [/^add-ons: Deployment kube-system\/coredns has 1 of 2 pods up to date$/],
  ],
  [
    "a DaemonSet whose change no controller has seen",
    (state) => (state.daemonSets[0]!.metadata.generation = 3),
    [/^add-ons: DaemonSet kube-system\/kube-proxy has a change that no controller has seen$/],
  ],
  [
    "an add-on in Calico's own namespace",
    (state) => (state.deployments[1]!.metadata.namespace = "calico-system"),
    [/^add-ons: Deployment calico-system\/somebodys-own has 0 of 2/],
  ],
  [
    "a cluster without the add-ons that kubeadm has made",
    (state) => Object.assign(state, { daemonSets: [], deployments: [] }),
    [
      /^add-ons: DaemonSet kube-system\/kube-proxy is not there$/,
      /^add-ons: Deployment kube-system\/coredns is not there$/,
    ],
  ],
  [
    "that all pods of CoreDNS are in one zone",
    (state) => (state.dnsPods[1]!.spec!.nodeName = "cp-1"),
    [/^CoreDNS over zones: all 2 ready pods are in southeastasia-1/],
  ],
  [
    "that no pod of CoreDNS is ready",
    (state) => (state.dnsPods = []),
    [/^CoreDNS over zones: no pod of CoreDNS is ready/],
  ],
  ...(
    [
      ["a Node that somebody has cordoned", {}, /not by this program$/],
      [
        "that a Node which an update drains was cordoned before, not by it",
        { "zoned/drained": "excluded" },
        /not by this program$/,
      ],
      [
        "a Node that an unfinished update has cordoned",
        { "zoned/drained": "unschedulable excluded" },
        /by a pulumi up that has not ended well$/,
      ],
      [
        "a Node that its machine has cordoned for an event of Azure",
        { "zoned/cordoned-for-maintenance": "an id" },
        /for an event of Azure/,
      ],
      [
        "a Node that kured has cordoned for a reboot",
        { "weave.works/kured-reboot-in-progress": "2026-11-23T02:00:00Z" },
        /by kured, for a reboot since 2026-11-23T02:00:00Z$/,
      ],
    ] as const
  ).map(([title, annotations, by]): [string, (state: FakeClusterState) => unknown, RegExp[]] => [
    title,
    (state) => {
      const node = ofMachine(state.nodes, "cp-2");
      node.spec!.unschedulable = true;
      Object.assign(node.metadata.annotations!, annotations);
    },
    [new RegExp(`^cordons: cp-2: its Node is cordoned,? ${by.source}`)],
  ]),
  [
    "a control plane whose Node was deleted and came back without its role",
    (state) => {
      delete ofMachine(state.nodes, "cp-2").metadata.labels![
        "node-role.kubernetes.io/control-plane"
      ];
    },
    [/^Nodes: cp-2: its Node has not the role of a control plane, /],
  ],
  ...["MemoryPressure", "DiskPressure", "PIDPressure"].map(
    (type): [string, (state: FakeClusterState) => unknown, RegExp[]] => [
      `a Node with ${type}`,
      (state) =>
        (ofMachine(state.nodes, "workers-1").status!.conditions!.find(
          (condition) => condition.type === type,
        )!.status = "True"),
      [new RegExp(`^pressure: workers-1: its Node has ${type}$`)],
    ],
  ),
  [
    "a pod that is Pending for too long",
    (state) => {
      state.pendingPods[0]!.metadata.creationTimestamp = ago(10 * 60);
      state.pendingPods[0]!.status = {
        conditions: [{ type: "PodScheduled", status: "False", message: "Insufficient cpu" }],
      };
    },
    [/^pending pods: pod default\/young is Pending for 10 minutes: Insufficient cpu$/],
  ],
])("sees %s, and nothing else, and says what to run", (_, change, says) => {
  const state = healthyCluster();
  change(state);

  expect(failures(state)).toEqual(says.map((text) => expect.stringMatching(text)));
  const fixes = checksOf(threeByThree, state).flatMap(({ problems }) => problems);
  expect(fixes.filter(({ fix }) => !/\b(pulumi up|kubectl|etcdctl|az vm) ?/.test(fix))).toEqual([]);
  // With --help it still refuses flags that a command does not have.
  for (const { fix } of fixes) {
    for (const [, words = ""] of fix.matchAll(/\bkubectl ([^;:,()]+?)(?= -- |[;:,()]|$)/g)) {
      output(built("kubectl"), [...words.split(" "), "--help"]);
    }
  }
});

it("sees control planes that share a zone", () => {
  const state = healthyCluster();
  const inOne = {
    ...threeByThree,
    machines: threeByThree.machines.map((machine) =>
      machine.name === "cp-3" ? { ...machine, zone: "southeastasia-1" } : machine,
    ),
  };
  for (const label of [nodeZone, diskZone]) {
    ofMachine(state.nodes, "cp-3").metadata.labels![label] = "southeastasia-1";
  }

  expect(failures(state, inOne)).toEqual([
    expect.stringMatching(/^control planes over zones: 3 in 2 of 3 zones/),
  ]);
});

it("says of a cluster without a cloud provider that its zones cannot be asked, and passes it", () => {
  const state = healthyCluster();
  for (const node of state.nodes) {
    delete node.metadata.labels![nodeZone];
    node.spec = {};
  }

  expect(failures(state)).toEqual([]);
  expect(notAsked(state)).toEqual(["zones", "control planes over zones", "CoreDNS over zones"]);
});

it("asks for no zones of disks where there is no disk driver", () => {
  const state = healthyCluster();
  state.daemonSets = without(state.daemonSets, "csi-azuredisk-node");
  delete ofMachine(state.nodes, "workers-3").metadata.labels![diskZone];

  expect(failures(state)).toEqual([]);
  expect(notAsked(state)).toEqual(["zones for disks"]);
});

it("says when the API server does not know how large etcd is", () => {
  const state = healthyCluster();
  state.storageBytes = undefined;

  expect(notAsked(state)).toEqual(["etcd size"]);
});

describe("the certificates that control planes renew", () => {
  const until = "zoned/certificates-valid-until";
  const days = (count: number) => new Date(now + count * 86_400_000).toISOString();
  const problemsWith = (annotations: Record<string, string>) => {
    const state = healthyCluster();
    state.nodes[1]!.metadata.annotations = annotations;
    return renewals(threeByThree, state).problems;
  };

  it.each([
    ["end in 46 days", { [until]: days(46) }, []],
    ["end in 44 days", { [until]: days(44) }, [/^valid until .+, 44 days$/]],
    ["are unknown", {}, [/does not say until when/]],
    ["are said in no date", { [until]: "null" }, [/^its Node says 'null' of until when/]],
    [
      "could not be renewed",
      { [until]: days(59), "zoned/certificates-renewal-failed": "2026-11-24T03:00:05Z: why" },
      [/^renewal failed: 2026-11-24T03:00:05Z: why$/],
    ],
  ])("on one machine %s", (_, annotations, said) => {
    expect(problemsWith(annotations as Record<string, string>)).toEqual(
      said.map((saw) => ({
        machine: "cp-2",
        saw: expect.stringMatching(saw),
        fix: expect.any(String),
      })),
    );
  });
});

it("takes kubelets to renew theirs for the API later where the controller manager signs them for days", () => {
  const state = healthyCluster();
  for (const pod of state.pods) {
    const { name } = pod.metadata;
    if (name.startsWith("kube-controller-manager-")) {
      pod.spec!.containers!.at(-1)!.command = ["--cluster-signing-duration=240h0m0s"];
    }
  }
  for (const kubelet of state.kubelets) kubelet.clientSeconds = 86_400;
  expect(failures(state)).toEqual([]);

  state.kubelets[3]!.clientSeconds = 43_200;
  expect(failures(state)).toEqual([
    expect.stringMatching(/^kubelets' certificates: workers-1: its kubelet's for the API is valid/),
  ]);
});

it.each<[what: string, count: number, change: (state: FakeClusterState) => unknown, is: boolean]>([
  ["is the only one of three that is not well", 3, () => undefined, true],
  ["is one of two", 2, () => undefined, false],
  ["is all that there is", 1, () => undefined, false],
  [
    "is one of two that are not well",
    3,
    (state) => (ofMachine(state.pods, "kube-scheduler-cp-2").status = notReady("it is ill")),
    false,
  ],
  [
    "is beside one whose kubelet is silent",
    3,
    (state) => (ofMachine(state.nodes, "cp-2").status = notReady("no network")),
    false,
  ],
  [
    "is beside a member of etcd of no control plane",
    3,
    ({ pods }) => pods.push({ ...pods[0]!, metadata: { ...pods[0]!.metadata, name: "etcd-cp-9" } }),
    false,
  ],
  ["is beside no controller manager that leads", 3, (state) => (state.manager = []), false],
  ["is where etcd takes no writes", 3, (state) => (state.writeError = "no space"), false],
])(
  "says how to delete a control plane only where etcd keeps its majority: one that %s",
  (...row) => {
    const [, count, change, isDeleted] = row;
    const machines = threeByThree.machines.slice(0, count);
    const state = healthyCluster({ machines });
    ofMachine(state.pods, "etcd-cp-1").status = notReady("it is ill");
    change(state);

    const fixes = checksOf({ machines }, state)
      .flatMap(({ problems }) => problems.map(({ fix }) => fix))
      .join();

    const way = "az vm delete --resource-group GROUP --name cp-1 --yes, then pulumi up";
    expect(fixes.includes(way)).toBe(isDeleted);
    expect(fixes.includes("delete no VM meanwhile")).toBe(!isDeleted);
    expect(/az vm delete .*--name cp-[23]/.test(fixes)).toBe(false);
  },
);

describe("the certificates by which API servers know kubelets", () => {
  const checked = (days?: number) => {
    const [first, second, ...others] = threeByThree.machines.map((machine, index) => ({
      ...machine,
      kubeletCertificateUntil: new Date(now + (400 + index) * 86_400_000).toISOString(),
    }));
    const until = days === undefined ? undefined : new Date(now + days * 86_400_000).toISOString();
    const machines = [first!, { ...second!, kubeletCertificateUntil: until }, ...others];
    return kubeletCertificates({ ...threeByThree, machines }, healthyCluster());
  };

  it.each([
    [
      "the earliest date of all",
      390,
      /^the API server takes those of 6 kubelets, the first to end is valid until .+, 390 days/,
    ],
    [
      "the earliest of those that are known",
      undefined,
      /the first to end is valid until .+, 400 days/,
    ],
  ])("say %s", (_, days, saw) => {
    expect(checked(days)).toMatchObject({ saw: expect.stringMatching(saw), problems: [] });
  });

  it("are a problem of their machine below 30 days, which pulumi up ends", () => {
    expect(checked(30).problems).toEqual([]);
    expect(checked(29).problems).toEqual([
      {
        machine: "cp-2",
        saw: expect.stringMatching(/^its kubelet's own is valid until .+, 29 days$/),
        fix: expect.stringMatching(/^pulumi up, /),
      },
    ]);
  });
});

it.each([
  [60, 0, "valid until 2027-01-22, 60 days"],
  [59.9, 1, "valid until 2027-01-22, 59 days"],
  [-0.5, 1, "expired on 2026-11-23"],
])("a certificate that is good for %d days has %d problems", (days, count, saw) => {
  const today = Date.parse("2026-11-23T17:41:28Z");
  const validTo = new Date(today + days * 86_400_000).toUTCString();
  const check = certificateCheck("admin certificate", validTo, today, {
    least: 60,
    fix: "renew it",
  });

  expect(check.problems).toHaveLength(count);
  expect(check.saw).toBe(saw);
});

describe("a change of keys", () => {
  const stages = [only(1)];
  for (let stage = 1; stage <= 3; stage += 1) stages.push(nextKeys(stages.at(-1)!, 2));

  it.each<[string, (state: RotationState) => Check, readonly string[]]>([
    [
      "the CAs",
      (cas) => certificateAuthorities({ ...threeByThree, cas }),
      [
        "CA 1 signs, and no other is trusted",
        "their change has not finished: CA 1 still signs, and CA 2 is trusted as well",
        "their change has not finished: CA 2 signs, and CA 1 is still trusted",
        "CA 2 signs, and no other is trusted",
      ],
    ],
    [
      "the key of Secrets",
      (encryptionKeys) => encryptionKeyGeneration({ ...threeByThree, encryptionKeys }),
      [
        "key 1 encrypts all of them",
        "its change has not finished: key 1 is still in use, and the API servers read key 2 as well",
        "its change has not finished: key 2 took all of them, and the API servers still read key 1",
        "key 2 encrypts all of them",
      ],
    ],
    [
      "the key of service accounts",
      (serviceAccountKeys) => serviceAccountKey({ ...threeByThree, serviceAccountKeys }),
      [
        "service account key 1 signs tokens, and those of no other are admitted",
        "its change has not finished: service account key 1 still signs, and tokens of service account key 2 are admitted as well",
        "its change has not finished: service account key 2 signs, and tokens of service account key 1 are still admitted",
        "service account key 2 signs tokens, and those of no other are admitted",
      ],
    ],
  ])("of %s is said at each stage not to have finished", (_, check, said) => {
    const checks = stages.map(check);

    expect(checks.map(({ saw, problems }) => problems[0]?.saw ?? saw)).toEqual(said);
    expect(checks.map(({ problems }) => problems.length)).toEqual([0, 1, 1, 0]);
  });

  it("is not asked for before an update has ended well, which says of what", () => {
    const { machines } = threeByThree;

    for (const check of [certificateAuthorities, serviceAccountKey]) {
      expect(check({ machines })).toMatchObject({ notAsked: "the outputs name none" });
    }
  });

  it("says that no key encrypts Secrets, and is not asked where the outputs name none", () => {
    const ofKeys = (encryptionKeys?: RotationState) =>
      encryptionKeyGeneration({ ...threeByThree, encryptionKeys });

    expect(ofKeys(only(0))).toMatchObject({
      saw: "none, as encryptionKeyGeneration 0 says",
      problems: [],
    });
    expect(ofKeys().notAsked).toBe("the outputs name none");
  });
});

describe("the login of people", () => {
  const issuer = "https://login.microsoftonline.com/a-tenant/v2.0";
  const withIssuer: Expected = { ...threeByThree, issuer };

  const login = (state: IssuerState, of = withIssuer) =>
    checksOf(of, { ...healthyCluster(), issuer: state }).find(
      ({ name }) => name === "login of people",
    );

  it("is not looked at where nobody's tokens are admitted", () => {
    expect(login({ refused: 3 }, threeByThree)).toBeUndefined();
  });

  it("passes with an API server that has the issuer's keys, whatever it has refused", () => {
    const check = login({ keysAt: 1_795_791_864, failedAt: 1_795_791_800, refused: 3 });

    expect(check).toMatchObject({ notAsked: undefined, problems: [] });
    expect(check!.saw).toBe(`the API server has the keys of ${issuer}, of 2026-11-27T15:04:24Z`);
  });

  it("says nothing where nobody has tried", () => {
    expect(login({ refused: 0 })).toMatchObject({
      notAsked: expect.stringContaining("nobody has logged in"),
      problems: [],
    });
  });

  it.each<[string, IssuerState, RegExp]>([
    ["that never had the keys", { refused: 2 }, /refused 2 tokens, and has never had the keys/],
    [
      "that gets no newer keys",
      { keysAt: 1_795_791_800, failedAt: 1_795_791_864, refused: 0 },
      /in vain for its keys, at 2026-11-27T15:04:24Z/,
    ],
  ])("fails with an API server %s, and names the way in that is left", (_, state, saw) => {
    expect(login(state)!.problems).toEqual([
      {
        saw: expect.stringMatching(saw),
        fix: expect.stringMatching(/reach login\.microsoftonline\.com .* output kubeconfig/),
      },
    ]);
  });

  it("reads the metrics of an API server", () => {
    const name = "apiserver_authentication_jwt_authenticator_";
    const labels = (result: string) => `{apiserver_id_hash="sha256:7",result="${result}"}`;
    const lines = [
      `${name}jwks_fetch_last_timestamp_seconds${labels("failure")} 1.795791800e+09`,
      `${name}jwks_fetch_last_timestamp_seconds${labels("success")} 1.795791864e+09`,
      `${name}latency_seconds_count${labels("failure")} 25`,
      `${name}latency_seconds_count${labels("success")} 6`,
    ];

    expect(issuerIn(lines.join("\n"))).toEqual({
      ...{ keysAt: 1_795_791_864, failedAt: 1_795_791_800, refused: 25 },
    });
  });

  it("says until when the certificate is the way in that is left", async () => {
    const api = await serveCluster({ current: healthyCluster() });
    const sawOf = async (cluster: Expected) =>
      (await checkCluster({ ...cluster, kubeconfig: api.kubeconfig })).checks.find(
        ({ name }) => name === "admin certificate",
      )!.saw;

    const [said, plain] = [await sawOf(withIssuer), await sawOf(threeByThree)];

    expect(plain).toMatch(/^valid until \d{4}-\d\d-\d\d, 36\d days$/);
    expect(said).toBe(`${plain}, the way in when ${issuer} does not answer`);
  });
});

describe("the newest snapshot of etcd", () => {
  const hour = 3600;

  const look = (snapshot: FakeClusterState["snapshot"], etcdBackups: string | undefined = "1h") =>
    snapshots({ ...threeByThree, etcdBackups }, { ...healthyCluster(), snapshot });

  const made = (seconds: number) => ({ ...healthyCluster().snapshot, time: ago(seconds) });

  it.each([
    ["1h", 3 * hour, 0],
    ["1h", 3 * hour + 1, 1],
    ["30m", 90 * 60, 0],
    ["30m", 2 * hour, 1],
    ["24h", 71 * hour, 0],
  ])("of a snapshot every %s, one %d s ago makes %d problems", (every, seconds, problems) => {
    expect(look(made(seconds), every).problems).toHaveLength(problems);
  });

  it("says how old the newest is, and why there was none since", () => {
    const failed = {
      failed: ago(60),
      error: "cp-1: https://backups refuses this machine's identity",
    };

    const { problems } = look({ ...made(5 * hour), ...failed });

    expect(problems[0]!.saw).toBe(
      "the newest is 5 h old: 20261124T215500Z-42.db of cp-2, 3.0 MiB, in https://backups.blob.core.windows.net/etcd, " +
        "and one is due every 1h; 1 min ago one failed on cp-1: https://backups refuses this machine's identity",
    );
    expect(problems[0]!.fix).toContain("systemctl start zoned-etcd-snapshot");
  });

  it("is content with one that failed while the newest is young, and mentions it", () => {
    const { saw, problems } = look({ ...made(hour), failed: ago(60), error: "cp-1: no answer" });

    expect(problems).toEqual([]);
    expect(saw).toMatch(/^the newest is 60 min old: .*; 1 min ago one failed on cp-1: no answer$/);
  });

  it.each([
    ["none was tried", undefined, /^none was made, and one is due every 1h$/],
    [
      "none has succeeded",
      { failed: ago(60), error: "cp-1: no answer" },
      /^none was made, and one is due every 1h; 1 min ago one failed on cp-1: no answer$/,
    ],
    [
      "its time cannot be read",
      { ...made(0), time: "yesterday" },
      /^the newest is an unknown time old: .*, and one is due every 1h$/,
    ],
  ])("reports that %s", (_, snapshot, saw) => {
    expect(look(snapshot).problems[0]!.saw).toMatch(saw);
  });

  it("asks nothing where etcd is not to be saved", () => {
    const check = snapshots(
      { ...threeByThree, etcdBackups: undefined },
      { ...healthyCluster(), snapshot: undefined },
    );

    expect(check).toMatchObject({ notAsked: "etcdBackups is not set", problems: [] });
  });
});
