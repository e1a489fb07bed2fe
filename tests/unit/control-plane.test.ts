import * as pulumi from "@pulumi/pulumi";

import { authoritiesVariable, only } from "../../components/kubeadm/rotations";
import { encryptionFile } from "../../components/kubeadm/encryption";
import { fixedDigest } from "../../components/plan/fixed-settings";
import {
  awaitedBy,
  buildMachines,
  existing,
  payloadOf,
  type Scene,
  stepType,
  vmType,
  waits,
} from "../support/machines";
import { validSettings } from "../support/sample";

const names = ["zoned-test-cp-1", "zoned-test-cp-2", "zoned-test-cp-3"];
const settings = { workerPools: [] };
const container =
  "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd";

const isKnown = (output: pulumi.Output<unknown>): Promise<boolean> =>
  (output as unknown as { isKnown: Promise<boolean> }).isKnown;

/** A cluster that has all of its control planes. */
const alive = { initialization: existing, existing: names };

type Built = Awaited<ReturnType<typeof buildMachines>>;

let firstUp: Built;
let living: Built;

beforeAll(async () => {
  firstUp = await buildMachines({ settings });
  living = await buildMachines({ settings, ...alive });
});

/** Machines of which each waits for the one before it. */
const inTurn = (first: string, second: string, third: string) => ({
  [first]: [],
  [second]: [first],
  [third]: [second],
});
const sideBySide = { "cp-1": [], "cp-2": [], "cp-3": [] };

it.each<[claim: string, scene: Scene, waits: { vms: object; steps?: object }]>([
  [
    "makes all VMs side by side on the first update, and lets them join one after another",
    {},
    { vms: sideBySide, steps: inTurn("cp-1", "cp-2", "cp-3") },
  ],
  [
    "touches no VM of a living cluster before the one before it is a member again",
    alive,
    { vms: inTurn("cp-1", "cp-2", "cp-3") },
  ],
  [
    "begins with the machine that is not well, and touches the others only after it",
    { ...alive, repairFirst: names[1] },
    { vms: inTurn("cp-2", "cp-1", "cp-3"), steps: inTurn("cp-2", "cp-1", "cp-3") },
  ],
  [
    "makes machines that a living cluster does not have yet side by side",
    { ...alive, existing: names.slice(0, 1) },
    { vms: sideBySide },
  ],
  [
    "has all that have left etcd join again before it touches a member",
    { ...alive, left: names.slice(1), repairFirst: names[1] },
    { vms: inTurn("cp-2", "cp-3", "cp-1") },
  ],
  [
    "makes those that a living cluster has lost one after another",
    { ...alive, existing: names.slice(0, 1), remembered: names, repairFirst: names[1] },
    { vms: inTurn("cp-2", "cp-1", "cp-3") },
  ],
  [
    "makes machines side by side when it initializes anew, whatever exists",
    { existing: names },
    { vms: sideBySide },
  ],
])("%s", async (_, scene, { vms, steps }) => {
  const { recorder } = await buildMachines({ settings, ...scene });

  expect(await waits(recorder, vmType)).toEqual(vms);
  if (steps) expect(await waits(recorder, stepType)).toEqual(steps);
});

it("touches none before pods may run on the one before it again", async () => {
  const vms = await living.recorder.of(vmType);

  for (const [index, name] of names.slice(1).entries()) {
    expect(await awaitedBy(vms.find(({ inputs }) => inputs.vmName === name)!)).toContain(
      `${names[index]}-membership`,
    );
  }
});

it("gives each machine the same files whoever is touched first, the day of its renewal among them", async () => {
  const { recorder } = await buildMachines({ settings, ...alive, repairFirst: names[1] });

  const days = [];
  for (const name of names) {
    const { files } = await payloadOf(recorder, name);
    expect(files).toEqual((await payloadOf(living.recorder, name)).files);
    const timer = files.find(({ path }) => path.endsWith("/zoned-certificates.timer"));
    days.push(/OnCalendar=(\w+)/.exec(timer!.content)?.[1]);
  }
  expect(days).toEqual(["Mon", "Tue", "Wed"]);
});

it("initializes when balancer and network exist, and joins when nodes can become ready", async () => {
  const { recorder } = firstUp;

  const [first, second] = await recorder.of(stepType);

  // The pod network is applied through the API, so initialization must not wait for it.
  expect(await awaitedBy(first!)).toEqual(["api", "network"]);
  expect(await awaitedBy(second!)).toContain("node-add-ons");
});

it("brings every control plane the keys of Secrets, and has the last one rewrite them", async () => {
  const rewriting = { keys: [2, 1], rewritten: true, past: [] };
  const { recorder } = await buildMachines({
    settings,
    encryptionKeys: rewriting,
    ...alive,
    repairFirst: names[2],
  });

  expect((await recorder.of(stepType)).map(({ inputs }) => inputs.tags)).toEqual(
    names.map(() => expect.objectContaining({ "zoned-encryption-keys": "2 1 rewritten" })),
  );
  for (const name of names) {
    const payload = await payloadOf(recorder, name);
    expect(payload.files).toContainEqual(encryptionFile("private secret of Secrets", rewriting));
    expect([name, payload.tasks]).toEqual([name, name === names[1] ? ["rewrite-secrets"] : []]);
  }
});

it("brings all CAs to every control plane, the one that signs alone as well, and has the last one restart pods where others come to be trusted", async () => {
  const authorities = { keys: [1, 2], rewritten: false, past: [] };
  const adding = await buildMachines({ settings, cas: authorities });
  const signing = await buildMachines({
    settings,
    cas: { keys: [2, 1], rewritten: true, past: [] },
  });

  expect((await adding.recorder.of(stepType)).map(({ inputs }) => inputs.tags)).toEqual(
    names.map(() => expect.objectContaining({ "zoned-cas": "1 2" })),
  );
  const back = await buildMachines({ settings, cas: only(1, [2]) });
  expect((await payloadOf(back.recorder, names[0]!)).tasks).toEqual(["cas"]);
  const unchanged = await payloadOf(firstUp.recorder, names[0]!);
  expect(unchanged.tasks).toEqual([]);
  for (const name of names) {
    const payload = await payloadOf(adding.recorder, name);
    const content = Object.fromEntries(payload.files.map((file) => [file.path, file.content]));
    expect(content["/etc/kubernetes/pki/ca.crt"]).toBe("all certs of ca");
    expect(content["/etc/kubernetes/pki/etcd/ca.crt"]).toBe("all certs of etcd-ca");
    expect(content["/etc/kubernetes/pki/signing-ca.crt"]).toBe("cert of ca");
    expect(content["/etc/zoned/kubeadm-init.yaml"]).toContain(
      authoritiesVariable(authorities).name,
    );
    // Else no control plane would give the cluster what kubeadm reads there.
    expect(payload.clusterConfiguration).not.toBe(unchanged.clusterConfiguration);
    const tasks = name === names[2] ? ["cas", "restart-pods"] : ["cas"];
    expect([name, payload.tasks]).toEqual([name, tasks]);
    expect((await payloadOf(signing.recorder, name)).tasks).toEqual(["cas"]);
  }
});

it("says on every step with which settings its cluster begins, of those that it keeps for its life", async () => {
  const fixedOf = async ({ recorder }: Built) =>
    (await recorder.of(stepType)).map(({ inputs }) => inputs.tags["zoned-fixed"]);
  const other = { ...settings, podCidr: "10.99.0.0/16" };

  for (const own of [settings, other]) {
    const fixed = fixedDigest({ ...validSettings, ...own });
    expect(await fixedOf(await buildMachines({ settings: own }))).toEqual(names.map(() => fixed));
  }
});

it("brings every control plane the keys of service accounts that the plan has, and says which", async () => {
  const changing = await buildMachines({
    settings,
    serviceAccountKeys: { keys: [1, 2], rewritten: false, past: [] },
  });
  const signing = await buildMachines({
    settings,
    serviceAccountKeys: { keys: [2, 1], rewritten: true, past: [] },
  });

  expect((await changing.recorder.of(stepType)).map(({ inputs }) => inputs.tags)).toEqual(
    names.map(() => expect.objectContaining({ "zoned-service-account-keys": "1 2" })),
  );
  const unchanged = await payloadOf(firstUp.recorder, names[0]!);
  for (const name of names) {
    const payload = await payloadOf(changing.recorder, name);
    expect([name, payload.tasks]).toEqual([name, []]);
    // Else no control plane would start anew what reads the keys.
    expect(payload.clusterConfiguration).not.toBe(unchanged.clusterConfiguration);
    expect((await payloadOf(signing.recorder, name)).tasks).toEqual(["forget-account-keys"]);
  }
});

it("has nobody rewrite Secrets where the key does not change, and the only one where it does", async () => {
  const { recorder } = await buildMachines({ settings, encryptionKeys: only(1) });
  for (const name of names) {
    expect((await payloadOf(recorder, name)).tasks).toEqual([]);
  }

  const single = await buildMachines({
    settings: { ...settings, controlPlaneCount: 1 },
    encryptionKeys: { keys: [2, 1], rewritten: true, past: [] },
  });
  expect((await payloadOf(single.recorder, names[0]!)).tasks).toEqual(["rewrite-secrets"]);
});

it("brings every control plane what repairs workers, and the identity that may, where the settings say so", async () => {
  const [pool] = validSettings.workerPools;
  const workerPools = [
    pool!,
    { ...pool!, name: "fast", ephemeralOsDisk: "ResourceDisk" as const },
    { ...pool!, name: "faster", ephemeralOsDisk: "NvmeDisk" as const },
  ];
  const { recorder } = await buildMachines({
    settings: { ...settings, autoRepair: true, workerPools },
  });

  for (const name of names) {
    const { tasks, files } = await payloadOf(recorder, name);
    const repairs = files.filter(({ path }) => path === "/opt/zoned/repair.env");
    expect([tasks, repairs]).toEqual([
      ["repair"],
      [
        expect.objectContaining({
          mode: "0600",
          content: expect.stringMatching(
            /^CLIENT_ID='the-client'\nRESOURCE_MANAGER='https:\/\/management\.azure\.com'\nEPHEMERAL_POOLS='zoned-test-fast zoned-test-faster'\n$/,
          ),
        }),
      ],
    ]);
  }
});

it.each([
  ["writes snapshots to a container", { container }, "the-client"],
  ["asks Azure for nothing", {}, ""],
])("knows the cluster's identity where it %s, or waits for none", async (_, where, client) => {
  const etcdBackups = { every: "1h", ...where };
  const { recorder } = await buildMachines({ settings: { ...settings, etcdBackups } });

  const { tasks, files } = await payloadOf(recorder, names[0]!);
  const { content } = files.find(({ path }) => path === "/opt/zoned/etcd-snapshot.env")!;
  expect([tasks, /^CLIENT_ID='(.*)'$/m.exec(content)![1]]).toEqual([["snapshots"], client]);
});

it("lets the first machine initialize, and nobody else", async () => {
  const { recorder } = firstUp;

  for (const name of names) {
    expect(await payloadOf(recorder, name)).toMatchObject({
      machine: name,
      role: "control-plane",
      initialControlPlane: "id of zoned-test-cp-1-vm",
    });
  }
  const tags = (await recorder.of(stepType)).map(
    ({ inputs }) => inputs.tags["zoned-initial-control-plane"],
  );
  expect(tags).toEqual(Array(3).fill("id of zoned-test-cp-1-vm"));
});

it.each([
  { previous: "is there", initialControlPlane: "the-initial-vm", payload: "the-initial-vm" },
  { previous: "is lost", initialControlPlane: undefined, payload: "nobody" },
])("lets none initialize a living cluster when the memory of who did $previous", async (scene) => {
  const { initialControlPlane, payload } = scene;
  const initialization = { ...existing, initialControlPlane };
  const { recorder } = await buildMachines({ settings, initialization, existing: names });

  for (const name of names)
    expect(await payloadOf(recorder, name)).toMatchObject({ initialControlPlane: payload });
});

it("hands every machine the cluster's keys, readable by root only, and kubeadm's files", async () => {
  const { recorder } = firstUp;

  const { files } = await payloadOf(recorder, "zoned-test-cp-2");
  const keys = files.filter(({ path }) => path.startsWith("/etc/kubernetes/pki/"));

  expect(keys.map(({ path, mode, content }) => [path, mode, content])).toEqual([
    ["/etc/kubernetes/pki/ca.crt", "0644", "all certs of ca"],
    ["/etc/kubernetes/pki/ca.key", "0600", "private key of ca"],
    ["/etc/kubernetes/pki/signing-ca.crt", "0644", "cert of ca"],
    ["/etc/kubernetes/pki/front-proxy-ca.crt", "0644", "all certs of front-proxy-ca"],
    ["/etc/kubernetes/pki/front-proxy-ca.key", "0600", "private key of front-proxy-ca"],
    ["/etc/kubernetes/pki/etcd/ca.crt", "0644", "all certs of etcd-ca"],
    ["/etc/kubernetes/pki/etcd/ca.key", "0600", "private key of etcd-ca"],
    ["/etc/kubernetes/pki/sa.pub", "0644", "all public keys of service-account"],
    ["/etc/kubernetes/pki/sa.key", "0600", "private key of service-account"],
  ]);
  expect(files.map(({ path }) => path)).toEqual(
    expect.arrayContaining([
      ...["/etc/zoned/kubeadm-init.yaml", "/etc/zoned/kubeadm-join.yaml"],
      // What an upgrade installs packages by.
      ...["/opt/zoned/first-boot.sh", "/etc/zoned/first-boot.env"],
    ]),
  );
});

it("tells each machine where it is, how the API is called, and how long pods may take to leave", async () => {
  const { recorder, plan } = await buildMachines({ settings: { ...settings, drainMinutes: 7 } });

  expect(await payloadOf(recorder, "zoned-test-cp-2")).toMatchObject({
    apiName: plan.apiServer.name,
    apiPort: 6443,
    kubernetesVersion: plan.settings.kubernetesVersion,
    nodeAddress: "172.16.2.5",
    modules: ["ip_vs", "ip_vs_rr", "nf_conntrack"],
    awaitsReady: true,
    drainMinutes: 7,
  });
});

it("does not wait for Ready nodes where the pod network is not this program's", async () => {
  const { recorder } = await buildMachines({ settings: { ...settings, cni: "none" } });

  expect((await payloadOf(recorder, "zoned-test-cp-2")).awaitsReady).toBe(false);
});

it("puts every machine into its zone, behind the balancer, with the identity", async () => {
  const { recorder } = firstUp;

  const vms = await recorder.of(vmType);
  const nics = await recorder.of("azure-native:network:NetworkInterface");

  expect(vms.map(({ inputs }) => inputs.zones)).toEqual([["1"], ["2"], ["3"]]);
  expect(nics.map(({ inputs }) => inputs.ipConfigurations[0].subnet.id)).toEqual([
    "subnet of zone 1",
    "subnet of zone 2",
    "subnet of zone 3",
  ]);
  for (const { inputs } of nics) {
    expect(inputs.ipConfigurations[0].loadBalancerBackendAddressPools).toEqual([
      { id: "the-pool" },
    ]);
  }
  for (const { inputs } of vms) {
    expect(inputs.identity.userAssignedIdentities).toEqual(["the-identity"]);
  }
});

it("acts as the cluster's identity and as the kubelets', each for its own", async () => {
  const { recorder } = await buildMachines({
    settings: { ...settings, registries: ["/the/registry"] },
  });

  expect((await recorder.of(vmType)).map(({ inputs }) => inputs.identity)).toEqual(
    Array(3).fill({
      type: "UserAssigned",
      userAssignedIdentities: ["the-identity", "the-kubelets"],
    }),
  );
});

it("carries no identity where its pods log in as their service accounts", async () => {
  const federation = { isUsed: true, isOnMachines: false };
  const { recorder } = await buildMachines({ settings, federation });

  expect((await recorder.of(vmType)).map(({ inputs }) => inputs.identity)).toEqual(
    Array(3).fill({ type: "None" }),
  );
});

it("tells that the API answers only when the initial control plane's step has ended", async () => {
  const known = ({ initial }: Built) => isKnown(initial.initialized);
  const previewed = await buildMachines({ settings, preview: true });

  // A step that failed has an id all the same, and a preview knows it.
  expect(await isKnown(previewed.initial.step.id)).toBe(true);
  expect(await known(previewed)).toBe(false);
  expect(await known(firstUp)).toBe(true);
});

it("tells control planes where the balancer is, since the API's name means themselves there", async () => {
  const { recorder } = firstUp;

  for (const name of names) {
    expect(await payloadOf(recorder, name)).toMatchObject({
      apiAddress: "20.0.0.4",
    });
  }
});

it("asks no internal balancer, which sends nothing back to its sender", async () => {
  const { recorder } = await buildMachines({ settings: { ...settings, apiAccess: "private" } });

  for (const name of names) {
    const payload = await payloadOf(recorder, name);
    expect(payload).toMatchObject({ isApiPrivate: true });
    expect(payload).not.toHaveProperty("apiAddress");
  }
});

describe("that is restored from a snapshot", () => {
  const initialization = { ...existing, isRestoring: true, restoredFrom: "latest" };

  it("begins when no machine of the etcd before is left, with the first machine", async () => {
    const { recorder } = await buildMachines({ settings, initialization, existing: names });

    expect(await waits(recorder, vmType)).toEqual({ "cp-1": [], "cp-2": [], "cp-3": [] });
    const [first] = await recorder.of(stepType);
    expect(await awaitedBy(first!)).toEqual([
      "api",
      "network",
      ...names.slice(1).map((name) => `${name}-vm`),
    ]);
    expect(await payloadOf(recorder, names[0]!)).toMatchObject({
      initialControlPlane: "id of zoned-test-cp-1-vm",
      restoredFrom: "latest",
    });
  });

  it("has the same steps afterwards, though nothing is to be restored any more", async () => {
    const after = { ...initialization, isRestoring: undefined };
    const { recorder } = await buildMachines({
      settings,
      initialization: { ...after, initialControlPlane: "id of zoned-test-cp-1-vm" },
      existing: names,
    });

    expect(await payloadOf(recorder, names[0]!)).toMatchObject({
      initialControlPlane: "id of zoned-test-cp-1-vm",
      restoredFrom: "latest",
    });
    const [first] = await recorder.of(stepType);
    expect(first!.inputs.tags["zoned-restored-from"]).toBe("latest");
  });
});
