import * as fs from "node:fs";
import * as path from "node:path";

import { Api, type Body, kubeconfigOf } from "../../../machines/simulated/api";
import {
  cloudLabels,
  initialized,
  providerId,
  reconcileCloudProvider,
} from "../../../machines/simulated/nodes/cloud-provider";
import { reconcileKubelets } from "../../../machines/simulated/nodes/kubelets";
import { nodeWasMissed, wasMissed } from "../../../machines/simulated/nodes/kwok";
import {
  controlPlaneMark,
  nodeOf,
  shutDown,
  uninitialized,
} from "../../../machines/simulated/nodes/node";
import { firstBoot, newFixture, scriptOf, vmOf } from "../../support/simulated/fixture";
import { CloudNodeManager } from "../../../../../components/add-ons/cloud-provider/cloud-node-manager";
import { isMachine, machineOf } from "../../../arm/types/compute/virtual-machine";
import { type LocalAzure, startLocalAzure } from "../../../daemon/local-azure";
import type { VirtualMachine } from "../../../machines/machines";
import { useOwnPrograms } from "../../../machines/own-programs";
import { nodeManager } from "../../../../programs/controllers";
import { compute, network, valid, withChange } from "../../support/arm/valid-resources";
import { Recorder } from "../../../../../tests/support/record";
import { validSettings } from "../../../../../tests/support/sample";
import { testFolder } from "../../../../../tests/support/test-folder";
import { describeUnless } from "../../../../../tests/support/unless";
import { until } from "../../../../../tests/support/until";

const vm = vmOf("demo-workers-1", "2", "172.16.2.16");
const registration = { kubeletExtraArgs: [{ name: "cloud-provider", value: "external" }] };
const worker = { role: "worker", kubernetesVersion: "1.36.3", maxPods: 30 } as const;
const fresh = nodeOf(vm, registration, worker);

const podOf = (image: string, more: object = {}) => ({
  metadata: {
    namespace: "kube-system",
    name: "pod",
    ownerReferences: [{ kind: "DaemonSet", name: "ds" }],
  },
  spec: { nodeName: vm.name, serviceAccountName: "robot", containers: [{ image, ...more }] },
});

const azureJson = JSON.stringify({ nodeInstanceNotFoundGracePeriodInSeconds: 300 });
const secrets: Readonly<Record<string, object>> = {
  "/api/v1/namespaces/kube-system/secrets/azure": {
    data: { "cloud-config": Buffer.from(azureJson).toString("base64") },
  },
};

const cni = (path: string) => {
  const pod = podOf("net");
  return { ...pod, spec: { ...pod.spec, volumes: [{ hostPath: { path } }] } };
};

/** What was asked of an API with this one node and these running pods, by whom. */
async function reconcile(
  pods: readonly object[],
  { vms = [vm], node = fresh as Body, managesNodes = true } = {},
) {
  const asked: string[] = [];
  const apiOf = (user: string): Api =>
    ({
      as: apiOf,
      get: async (path: string) =>
        path.startsWith("/api/v1/pods")
          ? { items: pods }
          : path === "/api/v1/nodes"
            ? { items: [node] }
            : (secrets[path] ?? node),
      ...Object.fromEntries(
        ["put", "patch", "delete"].map((verb) => [
          verb,
          async (path: string, body: unknown) => {
            asked.push(`${user} ${verb} ${path} ${JSON.stringify(body) ?? ""}`.trim());
          },
        ]),
      ),
    }) as unknown as Api;
  const due = await reconcileCloudProvider({
    api: apiOf("root"),
    vmOf: (name) => vms.find((candidate) => candidate.name === name),
    kubeletOf: () => apiOf("kubelet"),
    managesNodes,
    log: (message) => asked.push(message),
  });
  return { asked, due };
}

const robot = "system:serviceaccount:kube-system:robot";
const created = (secondsAgo: number): string =>
  new Date(Date.now() - secondsAgo * 1000).toISOString();
const silent = {
  ...fresh,
  status: { ...fresh.status, conditions: [{ type: "Ready", status: "Unknown" }] },
};

const settled = { ...fresh, spec: { ...fresh.spec, taints: [] as object[] } };
const conditions = (status: string) => ({
  ...settled,
  status: { ...fresh.status, conditions: [{ type: "Ready", status }] },
});
const heard = conditions("True");
const unheard = conditions("Unknown");
const tainted = (node: Body) => ({ ...node, spec: { ...node.spec, taints: [shutDown] } });

it("names machines and zones as Azure's cloud provider does", () => {
  expect(providerId(vm)).toContain("/resourceGroups/demo/");
  expect(cloudLabels(vm)["topology.kubernetes.io/zone"]).toBe("westeurope-2");
  expect(cloudLabels({ ...vm, location: "West Europe" })).toEqual(cloudLabels(vm));
  expect(cloudLabels({ ...vm, zone: undefined })["topology.kubernetes.io/zone"]).toBe("0");
  expect(Object.keys(cloudLabels(vm)).filter((label) => label.includes("beta"))).toEqual([]);
});

it.each([
  { path: "/etc/cni/net.d", finds: true },
  { path: "/etc/cni", finds: true },
  { path: "/etc/cnid", finds: false },
  { path: "/opt/cni/bin", finds: false },
])("finds a CNI in a pod that mounts $path: $finds", async ({ path, finds }) => {
  const { asked } = await reconcile([cni(path)]);

  expect(asked).toEqual(
    finds
      ? [
          `kubelet patch /api/v1/nodes/${vm.name} {"metadata":{"annotations":{"zoned.local/cni":"ds"}}}`,
        ]
      : [],
  );
});

const manager = podOf("r/azure-cloud-node-manager:v1");
const controllers = podOf("r/azure-cloud-controller-manager:v1", { args: ["--controllers=*"] });

it("initializes a node with the rights of the node manager on it", async () => {
  const { asked } = await reconcile([manager]);

  expect(asked.map((each) => each.split(" ").slice(0, 3))).toEqual([
    [robot, "patch", `/api/v1/nodes/${vm.name}/status`],
    [robot, "put", `/api/v1/nodes/${vm.name}`],
  ]);
});

it.each<[what: string, pod: object, managesNodes: boolean]>([
  ["where Azure's own node manager runs", manager, false],
  ["of another machine", { ...manager, spec: { ...manager.spec, nodeName: "demo-cp-1" } }, true],
  ["by a controller manager, whatever its controllers", controllers, true],
])("initializes no node %s", async (_, pod, managesNodes) => {
  expect((await reconcile([pod], { managesNodes })).asked).toEqual([]);
});

it("has nothing more to do once a node has its network and is initialized", async () => {
  const annotations = { ...fresh.metadata.annotations, "zoned.local/cni": "ds" };
  const done = { ...settled, metadata: { ...fresh.metadata, annotations } };

  expect(await reconcile([], { node: done })).toEqual({ asked: [], due: false });
});

it("shows a machine that is gone as silent, which takes no rights of the cloud provider's", async () => {
  const { asked } = await reconcile([], { vms: [] });

  const path = `/api/v1/nodes/${vm.name}`;
  expect(asked).toEqual([
    expect.stringMatching(`^root patch ${path} .*"kwok\\.x-k8s\\.io/node":null`),
    expect.stringMatching(`^root patch ${path}/status .*"NodeStatusUnknown"`),
  ]);
});

const taint = { key: "node.cloudprovider.kubernetes.io/shutdown", effect: "NoSchedule" };
it.each<[what: string, node: Body, isOff: boolean, taints: object[] | undefined]>([
  ["taints a silent node of a machine that is off", unheard, true, [taint]],
  ["leaves a silent node of a machine that runs", unheard, false, undefined],
  ["leaves a node that is still heard", heard, true, undefined],
  ["takes the taint from a node that is heard again", tainted(heard), false, []],
  ["leaves the taint while it is silent", tainted(unheard), false, undefined],
])("%s", async (_, node, isOff, taints) => {
  const elsewhere = { ...controllers, spec: { ...controllers.spec, nodeName: "demo-cp-1" } };

  const { asked } = await reconcile([elsewhere], { vms: [{ ...vm, isOff }], node });

  const path = `/api/v1/nodes/${vm.name}`;
  const patch = taints && `${robot} patch ${path} ${JSON.stringify({ spec: { taints } })}`;
  expect(asked).toEqual(patch === undefined ? [] : [patch]);
});

interface Silent {
  readonly vms?: (typeof vm)[];
  readonly pods?: boolean;
  readonly on?: string;
  readonly age?: number;
  readonly managesNodes?: boolean;
}
it.each<[what: string, given: Silent]>([
  ["deletes a silent node that has no machine", {}],
  ["keeps one that is younger than azure.json asks for", { age: 290 }],
  ["keeps one while no controller manager runs", { pods: false }],
  ["keeps one while the only controller manager is on it", { on: vm.name }],
  ["keeps one whose name another machine has", { vms: [{ ...vm, vmId: "another" }] }],
  ["leaves one to Azure's own controller manager where that runs", { managesNodes: false }],
])("%s", async (what, { vms = [], pods = true, on = "demo-cp-1", age = 310, managesNodes }) => {
  const volumes = [{ name: "cloud-config", secret: { secretName: "azure" } }];
  const placed = { ...controllers, spec: { ...controllers.spec, volumes, nodeName: on } };
  const node = { ...silent, metadata: { ...silent.metadata, creationTimestamp: created(age) } };

  const { asked } = await reconcile(pods ? [placed] : [], { vms, node, managesNodes });

  const deletion = `${robot} delete /api/v1/nodes/${vm.name}`;
  expect(asked).toEqual(what.startsWith("deletes") ? [deletion] : []);
});

const args = (values: Record<string, string>) =>
  Object.entries(values).map(([name, value]) => ({ name, value }));

it("goes by the last of several arguments of the same name, as a kubelet does", () => {
  const [first] = args({ "node-labels": "a=1" });
  const [last] = args({ "node-labels": "b=2" });

  const { labels } = nodeOf(vm, { kubeletExtraArgs: [first!, last!] }, worker).metadata;

  expect(labels).toMatchObject({ b: "2" });
  expect(labels).not.toHaveProperty("a");
});

it("refuses an address that the machine does not have", () => {
  const registration = { kubeletExtraArgs: args({ "node-ip": "172.16.9.9" }) };

  expect(() => nodeOf(vm, registration, worker)).toThrow(/no interface of the machine has it/);
});

it.each([
  ["Standard_B2s", "amd64", { cpu: "2", memory: "4Gi", pods: "30" }],
  ["Standard_D4ps_v5", "arm64", { cpu: "4", memory: "16Gi", pods: "30" }],
])(
  "has on a %s the architecture %s, what that size has, and room for as many pods as it is told",
  (size, architecture, capacity) => {
    expect(nodeOf({ ...vm, size }, {}, worker).status).toMatchObject({
      ...{ nodeInfo: { architecture }, capacity, allocatable: capacity },
    });
  },
);

const present = [{ key: "a", effect: "NoSchedule" }];
const ofEffect = [{ key: "a", effect: "NoExecute" }];
const controlPlane = { key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" };
it.each([
  ["a control plane's taint where nothing is said", undefined, [...present, controlPlane]],
  ["none where the list is empty", [], undefined],
  ["one of another effect", ofEffect, [...present, ...ofEffect]],
  ["none that is there", present, undefined],
])("mark-control-plane gives a Node %s", (_, taints, given) => {
  expect(controlPlaneMark({ taints }, present).spec?.taints).toEqual(given);
});

const now = new Date();
const old = { creationTimestamp: created(60) };
const [pending, running] = [{ phase: "Pending" }, { phase: "Running" }];
const recent = { creationTimestamp: created(1) };
const shown = { ...old, annotations: { "zoned.local/shown": created(1) } };
const ofJob = { ...old, ownerReferences: [{ kind: "Job" }] };
const claims = { volumes: [{ persistentVolumeClaim: { claimName: "it" } }] };
it.each<[what: string, missed: boolean, metadata: Body, status: Body, spec?: Body]>([
  ["has not started for long", true, old, pending],
  ["is new", false, recent, pending],
  ["was shown just now", false, shown, pending],
  ["waits for its disk", false, old, pending, claims],
  ["runs", false, old, running],
  ["is a Job's and has not ended", true, ofJob, running],
  ["is deleted and still there", true, { ...old, deletionTimestamp: created(10) }, running],
])("KWOK has missed a pod that %s: %s", (_, missed, metadata, status, spec = {}) => {
  expect(Boolean(wasMissed({ metadata, spec, status }, now))).toBe(missed);
});

it.each<[what: string, missed: boolean, metadata: Body]>([
  ["long", true, old],
  ["just now", false, recent],
  ["long, and was shown just now", false, shown],
])("KWOK has missed a Node that is there for %s: %s", (_, missed, metadata) => {
  expect(nodeWasMissed({ metadata }, now)).toBe(missed);
});

const givenBack = (seconds: number) => ({ "zoned.local/heard": created(seconds) });
it.each<
  [
    what: string,
    restarts: boolean,
    given: { annotations: object; lease?: object; started?: number },
  ]
>([
  ["has made a Node no lease for long", true, { annotations: givenBack(20) }],
  ["was given a Node just now", false, { annotations: givenBack(10) }],
  ["has lost a Node that is new to it", true, { annotations: {} }],
  ["has made its lease", false, { annotations: givenBack(20), lease: {} }],
  ["was itself started just now", false, { annotations: givenBack(20), started: 10 }],
])(
  "a KWOK that %s is started anew, once, whether its Nodes are Ready or not: %s",
  async (_, restarts, { annotations: more, lease, started = 60 }) => {
    const annotations = { "kwok.x-k8s.io/node": "fake", "zoned.local/cni": "ds", ...more };
    for (const { status } of [heard, unheard]) {
      const metadatas = [vm.name, "another"].map((name) => ({ name, ...old, annotations }));
      const items: Readonly<Record<string, readonly object[]>> = {
        nodes: metadatas.map((metadata) => ({ metadata, status })),
        leases: lease === undefined ? [] : metadatas.map((metadata) => ({ metadata, ...lease })),
      };
      let [since, times] = [Date.parse(created(started)), 0];
      const api = {
        get: async (path: string) => ({ items: items[path.split("/").at(-1)!] ?? [] }),
        patch: async () => undefined,
      } as unknown as Api;

      const { due } = await reconcileKubelets({
        ...{ api, members: [], kubeletOf: () => api, manifestOf: () => "" },
        vmOf: (name) => ({ ...vm, name }),
        kwokSince: () => since,
        restartKwok: async () => {
          since = Date.now();
          times += 1;
        },
      });

      expect(times).toBe(restarts ? 1 : 0);
      expect(due).toBe(lease === undefined || status === unheard.status);
    }
  },
);

const state = testFolder();

const binaries = process.env.ZONED_BINARIES;
const obstacle = binaries === undefined ? "ZONED_BINARIES names no folder" : undefined;

const apiName = "demo.westeurope.cloudapp.azure.com";

describeUnless(obstacle)(`the program's node manager (${nodeManager.version})`, () => {
  jest.setTimeout(600_000);
  let azure: LocalAzure;
  let first: VirtualMachine;

  const admin = () => {
    const file = path.join(state, "machines/clusters", apiName, "root/etc/kubernetes/admin.conf");
    const { ca, user } = kubeconfigOf(fs.readFileSync(file, "utf8"));
    const address = azure.machines.apiAddress(apiName)!;
    return new Api({ ...address, serverName: apiName, ca }, user);
  };
  const vm = (name: string): VirtualMachine => {
    const resource = azure.arm.view.find(compute(`virtualMachines/${name}`))!;
    if (!isMachine(resource)) throw new Error(`${name} is no machine`);
    return machineOf(resource, azure.arm.view);
  };

  /** Creates a machine at this address of the first zone. */
  async function create(name: string, address: string): Promise<VirtualMachine> {
    const nic = network(`networkInterfaces/${name}-nic`);
    const configuration = "ipConfigurations.0";
    await azure.arm.put(
      nic,
      withChange("nic", {
        [`${configuration}.privateIPAddress`]: address,
        [`${configuration}.loadBalancerBackendAddressPools`]: undefined,
      }),
    );
    await azure.arm.put(
      compute(`virtualMachines/${name}`),
      withChange("machine", {
        "networkProfile.networkInterfaces.0.id": nic,
        "osProfile.computerName": name,
        "osProfile.customData": firstBoot,
        "storageProfile.osDisk.name": `${name}-os`,
      }),
    );
    return vm(name);
  }

  /** What the program applies for its node manager. */
  async function recorded(): Promise<[string, Body][]> {
    const recorder = await Recorder.start();
    const opts = { transformations: [recorder.watch] };
    const settings = { ...validSettings, clusterName: "demo", controlPlaneCount: 1 };
    new CloudNodeManager("cnm", { settings, apiServer: { name: apiName, port: 6443 } }, opts);
    const own = async (kind: string, apiVersion: string, path: string) =>
      (await recorder.of(`kubernetes:${kind}`)).map(({ inputs }): [string, Body] => [
        path,
        { ...inputs, apiVersion, kind: kind.split(":")[1] },
      ]);
    const rbac = "rbac.authorization.k8s.io/v1";
    const system = "namespaces/kube-system";
    return [
      ...(await own("core/v1:ServiceAccount", "v1", `/api/v1/${system}/serviceaccounts`)),
      ...(await own(`${rbac}:ClusterRole`, rbac, `/apis/${rbac}/clusterroles`)),
      ...(await own(`${rbac}:ClusterRoleBinding`, rbac, `/apis/${rbac}/clusterrolebindings`)),
      ...(await own("apps/v1:DaemonSet", "apps/v1", `/apis/apps/v1/${system}/daemonsets`)),
    ];
  }
  beforeAll(async () => {
    useOwnPrograms(state);
    azure = await startLocalAzure({ state, binaries: binaries!, log: () => undefined });
    const fixture = await newFixture(apiName);
    for (const [id, body] of [
      ...[valid.group, valid.securityGroup, valid.rule, valid.routeTable, valid.natIp],
      ...[valid.nat, valid.vnet, valid.subnet],
    ]) {
      await azure.arm.put(id, body);
    }
    first = await create("cp-1", "172.16.1.4");
    const script = scriptOf(fixture, first, { initialControlPlane: first.vmId });
    const { exitCode, stderr } = await azure.machines.runScript(first, script);
    if (exitCode !== 0) throw new Error(stderr);
  });
  afterAll(() => azure?.stop());

  it("initializes a Node in place of its pod, and as the simulated one does", async () => {
    const of = (name: string) => admin().get(`/api/v1/nodes/${name}`);
    const isFresh = ({ spec }: Body): boolean =>
      (spec.taints ?? []).some(({ key }: Body) => key === uninitialized.key);
    const fresh = await of("cp-1");
    expect(isFresh(fresh)).toBe(true);

    for (const [at, object] of await recorded()) await admin().post(at, object);

    const node = await until("a Node without the taint", async () => {
      const seen = await of("cp-1");
      return isFresh(seen) ? undefined : seen;
    });
    const simulated = initialized(fresh, first);
    expect(node.metadata.labels).toEqual(simulated.metadata.labels);
    expect(node.spec.providerID).toBe(simulated.spec.providerID);
    expect(new Set(node.status.addresses)).toEqual(new Set(fresh.status.addresses));
  });
});
