import * as pulumi from "@pulumi/pulumi";

import { roomOf } from "../../components/kubeadm/kubeadm";
import { deriveToken } from "../../components/machine/join-token";
import {
  awaitedBy,
  buildMachines,
  existing,
  now,
  payloadOf,
  Scene,
  stepType,
  vmType,
  waits,
} from "../support/machines";
import { pool, validSettings } from "../support/sample";

const settings = {
  controlPlaneCount: 1,
  workerPools: [
    { ...pool, name: "web", count: 2 },
    { ...pool, name: "db", count: 2 },
  ],
};
const all = ["cp-1", "web-1", "web-2", "db-1", "db-2"].map((name) => `zoned-test-${name}`);
const build = (scene: Scene = {}) => buildMachines({ settings, ...scene });

type Built = Awaited<ReturnType<typeof build>>;

let firstUp: Built;
let living: Built;

beforeAll(async () => {
  firstUp = await build();
  living = await build({ initialization: existing, existing: all });
});

const without = (waiting: Record<string, string[]>, prefix: string) =>
  Object.fromEntries(Object.entries(waiting).filter(([name]) => !name.startsWith(prefix)));

it("makes all workers side by side on the first update, and lets them join side by side", async () => {
  const { recorder } = firstUp;
  const free = { "web-1": [], "web-2": [], "db-1": [], "db-2": [] };

  expect(without(await waits(recorder, vmType), "cp-")).toEqual(free);
  expect(without(await waits(recorder, stepType), "cp-")).toEqual(free);
});

it("changes one worker of a pool at a time in a living cluster, after the control plane", async () => {
  const { recorder } = living;

  expect(without(await waits(recorder, vmType), "cp-")).toEqual({
    "web-1": ["cp-1"],
    "web-2": ["cp-1", "web-1"],
    "db-1": ["cp-1"],
    "db-2": ["cp-1", "db-1"],
  });
});

it("changes as many workers of a pool at a time as it can do without, and each after its pods", async () => {
  const web = { ...pool, name: "web", count: 3, maxUnavailable: 2 };
  const { recorder } = await build({
    settings: { ...settings, workerPools: [web] },
    initialization: existing,
    existing: ["cp-1", "web-1", "web-2", "web-3"].map((name) => `zoned-test-${name}`),
  });

  expect(without(await waits(recorder, vmType), "cp-")).toEqual({
    "web-1": ["cp-1"],
    "web-2": ["cp-1"],
    "web-3": ["cp-1", "web-1"],
  });
  const vms = await recorder.of(vmType);
  expect(await awaitedBy(vms.find(({ name }) => name === "zoned-test-web-3-vm")!)).toContain(
    "zoned-test-web-1-membership",
  );
});

describe("workers that are removed together", () => {
  /** By worker whose memberships its own ends before. */
  async function order({ recorder }: Built) {
    const short = (name: string) => name.replace(/^zoned-test-(.*)-membership$/, "$1");
    const memberships = await recorder.of("pulumi-nodejs:dynamic/zoned:Membership");
    const entries = memberships.map(async (one) => [
      short(one.name),
      (await awaitedBy(one)).filter((name) => name.endsWith("-membership")).map(short),
    ]);
    return without(Object.fromEntries(await Promise.all(entries)), "cp-");
  }
  const five = { ...pool, name: "web", count: 5 };

  it.each([
    [
      1,
      {
        "web-1": [],
        "web-2": ["web-1"],
        "web-3": ["web-1", "web-2"],
        "web-4": ["web-1", "web-2", "web-3"],
        "web-5": ["web-1", "web-2", "web-3", "web-4"],
      },
    ],
    [
      2,
      {
        ...{ "web-1": [], "web-2": [], "web-3": ["web-1"], "web-4": ["web-2"] },
        "web-5": ["web-1", "web-3"],
      },
    ],
    [5, { "web-1": [], "web-2": [], "web-3": [], "web-4": [], "web-5": [] }],
  ])(
    "leave %d at a time, also those that one update has made",
    async (maxUnavailable, expected) => {
      const workerPools = [{ ...five, maxUnavailable }];

      expect(await order(await build({ settings: { ...settings, workerPools } }))).toEqual(
        expected,
      );
    },
  );

  it("leave by pools", async () => {
    expect(await order(firstUp)).toEqual({
      ...{ "web-1": [], "web-2": ["web-1"], "db-1": [], "db-2": ["db-1"] },
    });
  });

  it("leave with those that were made anew between them, and none that is living waits for a join of these", async () => {
    const built = await build({
      settings: { ...settings, workerPools: [{ ...five, count: 4 }] },
      initialization: existing,
      existing: ["cp-1", "web-1", "web-3", "web-4"].map((name) => `zoned-test-${name}`),
    });

    expect(await order(built)).toEqual({
      ...{ "web-1": [], "web-3": ["web-1"], "web-4": ["web-1", "web-3"] },
      "web-2": ["web-1", "web-3", "web-4"],
    });
    expect(without(await waits(built.recorder, vmType), "cp-")).toEqual({
      ...{ "web-1": ["cp-1"], "web-3": ["cp-1", "web-1"], "web-4": ["cp-1", "web-3"] },
      "web-2": [],
    });
  });

  it("leave without a word to new spot machines, which may never be there", async () => {
    const spot = { evictionPolicy: "Delete" as const };
    const built = await build({
      settings: { ...settings, workerPools: [{ ...five, count: 3, spot }] },
      initialization: existing,
      existing: ["cp-1", "web-3"].map((name) => `zoned-test-${name}`),
    });

    expect(await order(built)).toEqual({ "web-3": [], "web-1": ["web-3"], "web-2": ["web-3"] });
  });
});

it("stays the same machine where the cluster is restored, for which control planes are made anew", async () => {
  const initialization = { ...existing, id: "1-then-later" };
  const { recorder } = await build({ initialization, existing: all });

  const madeFor = (await recorder.of(vmType)).map(
    ({ inputs }) => inputs.tags["zoned-initialization"],
  );
  expect(madeFor).toEqual(["1-then-later", ...Array(4).fill("1-then")]);
});

it("is made anew after the control planes where the cluster is restored, since what is lost of it leaves by the API", async () => {
  const { recorder } = await build({
    initialization: { ...existing, isRestoring: true, restoredFrom: "latest" },
    existing: all.filter((name) => name !== "zoned-test-web-1"),
  });

  expect((await waits(recorder, vmType))["web-1"]).toEqual(["cp-1"]);
});

it("waits for every control plane machine, not only the last", async () => {
  const { recorder } = await build({
    settings: { ...settings, controlPlaneCount: 3 },
    initialization: existing,
    existing: ["zoned-test-web-1"],
  });

  expect((await waits(recorder, vmType))["web-1"]).toEqual(["cp-1", "cp-2", "cp-3"]);
});

it("adds workers to a living cluster side by side", async () => {
  const { recorder } = await build({
    initialization: existing,
    existing: ["zoned-test-cp-1", "zoned-test-web-1"],
  });

  expect(without(await waits(recorder, vmType), "cp-")).toEqual({
    "web-1": ["cp-1"],
    "web-2": [],
    "db-1": [],
    "db-2": [],
  });
  // No kubelet may be newer than an API server.
  expect((await waits(recorder, stepType))["web-2"]).toEqual(["cp-1"]);
});

it("joins when nodes can become ready and its token and its right exist", async () => {
  const { recorder } = firstUp;

  const steps = await recorder.of(stepType);

  expect(await awaitedBy(steps.find(({ name }) => name === "zoned-test-web-1-bootstrap")!)).toEqual(
    ["network", "node-add-ons", "zoned-test-web-1-join-binding", "zoned-test-web-1-join-token"],
  );
});

it("joins with a token of its own, and holds no key of the cluster's", async () => {
  const { recorder } = firstUp;

  const payload = await payloadOf(recorder, "zoned-test-web-1");
  const { id, secret } = deriveToken("private join secret", `zoned-test-web-1/${now}`);
  const discovery = payload.files.find(({ path }) => path === "/etc/zoned/discovery.conf");

  expect(discovery?.mode).toBe("0600");
  expect(discovery?.content).toContain(`${id}.${secret}`);
  expect(discovery?.content).toContain(Buffer.from("all certs of ca").toString("base64"));
  expect(JSON.stringify(payload)).not.toContain("private ");
  expect(payload).not.toHaveProperty("initialControlPlane");
});

it("saves no etcd and repairs no other machine, and prepares for Azure's events as all do", async () => {
  const more = { autoRepair: true, etcdBackups: { every: "1h" } };
  const { recorder } = await build({ settings: { ...settings, ...more } });

  const [own, ofControlPlane] = [
    await payloadOf(recorder, "zoned-test-web-1"),
    await payloadOf(recorder, "zoned-test-cp-1"),
  ];

  expect([own.tasks, ofControlPlane.tasks]).toEqual([[], ["snapshots", "repair"]]);
  for (const { files } of [own, ofControlPlane])
    expect(files.map(({ path }) => path)).toContain(
      "/etc/systemd/system/zoned-maintenance.service",
    );
});

it("knows whether its OS disk lasts no longer than it stays on its host", async () => {
  const fast = { ...pool, name: "fast", count: 1, ephemeralOsDisk: "NvmeDisk" as const };
  const { recorder } = await build({
    settings: { ...settings, workerPools: [...settings.workerPools, fast] },
  });

  expect(await payloadOf(recorder, "zoned-test-fast-1")).toHaveProperty("isEphemeral", true);
  expect(await payloadOf(recorder, "zoned-test-web-1")).not.toHaveProperty("isEphemeral");
});

it("takes other CAs as a member, once there are others than the first ones", async () => {
  const takes = async (keys: readonly number[], past: readonly number[] = []) => {
    const cas = { keys, rewritten: true, past };
    const { recorder } = await build({ cas });
    return (await payloadOf(recorder, "zoned-test-web-1")).tasks;
  };

  expect([await takes([1]), await takes([2, 1]), await takes([2])]).toEqual([[], ["cas"], ["cas"]]);
  // The last stage of a change that was taken back has the others forgotten.
  expect(await takes([1], [2])).toEqual(["cas"]);
});

it("has nothing to do with the keys of service accounts", async () => {
  const { recorder } = await build({
    serviceAccountKeys: { keys: [2, 1], rewritten: true, past: [] },
  });

  expect((await payloadOf(recorder, "zoned-test-web-1")).tasks).toEqual([]);
});

it("keeps the token of a worker that is well, and gives a new one for a new run", async () => {
  const nameOf = async ({ recorder }: Built) => {
    const secrets = await recorder.of("kubernetes:core/v1:Secret");
    return secrets.find(({ name }) => name === "zoned-test-web-1-join-token")!.inputs.metadata.name;
  };
  const { id } = deriveToken("private join secret", "zoned-test-web-1/2026-02-01T00:00:00.000Z");

  expect(await nameOf(living)).toBe(`bootstrap-token-${id}`);
  expect(await nameOf(firstUp)).not.toBe(`bootstrap-token-${id}`);
});

it("tells each worker where it is and how the API is called", async () => {
  const { recorder, plan } = await build({
    settings: { ...settings, cni: "none", drainMinutes: 7 },
  });

  expect(await payloadOf(recorder, "zoned-test-db-2")).toMatchObject({
    machine: "zoned-test-db-2",
    role: "worker",
    apiName: plan.apiServer.name,
    apiPort: 6443,
    kubernetesVersion: plan.settings.kubernetesVersion,
    nodeAddress: plan.workers.find(({ name }) => name === "zoned-test-db-2")?.address,
    awaitsReady: false,
    drainMinutes: 7,
    files: expect.arrayContaining([
      expect.objectContaining({ path: "/opt/zoned/first-boot.sh", mode: "0700" }),
    ]),
  });
});

it("puts every worker into its zone, and none behind the API's balancer or under its identity", async () => {
  const { recorder, plan } = firstUp;

  const workersOf = async (type: string) =>
    (await recorder.of(type)).filter(({ name }) => !name.includes("-cp-"));
  const vms = await workersOf(vmType);
  const nics = await workersOf("azure-native:network:NetworkInterface");

  for (const [index, worker] of plan.workers.entries()) {
    expect(vms.find(({ inputs }) => inputs.vmName === worker.name)?.inputs.zones).toEqual([
      worker.zone,
    ]);
    const nic = nics.find(({ name }) => name === `${worker.name}-nic`);
    expect(nic?.inputs.ipConfigurations[0].subnet.id).toBe(
      `subnet of zone ${["2", "3"][index % 2]}`,
    );
  }
  for (const { inputs } of nics) {
    expect(inputs.ipConfigurations[0].loadBalancerBackendAddressPools).toEqual([]);
  }
  for (const { inputs } of vms) expect(inputs.identity).toEqual({ type: "None" });
});

it("acts as the kubelets' identity where there are registries, has its kubelet log in by it, and installs what does so", async () => {
  const government = {
    resourceManagerEndpoint: "https://management.usgovcloudapi.net",
    registries: ["/the/registry"],
  };
  const { recorder } = await build({ settings: { ...settings, ...government } });

  const vm = (await recorder.of(vmType)).find(({ inputs }) => /-web-1$/.test(inputs.vmName))!;
  const { files, tasks } = await payloadOf(recorder, "zoned-test-web-1");
  const login = files.find(({ path }) => path === "/etc/zoned/registries.json");

  expect(vm.inputs.identity.userAssignedIdentities).toEqual(["the-kubelets"]);
  expect(tasks).toEqual(["registries"]);
  expect(JSON.parse(login!.content)).toMatchObject({
    ...{ tenantId: "the-tenant", userAssignedIdentityID: "client-of-kubelets" },
    cloud: "AzureUSGovernmentCloud",
  });
});

it("has its kubelet log in to registries that are not Azure's, and its containerd ask no mirror there, nor at those", async () => {
  const registryCredentials = { "ghcr.io": { username: "robot", password: "hush" } };
  const mirror = "http://10.0.0.4:8080";
  const registries = ["/the/registry"];
  const { recorder } = await build({
    settings: { ...settings, mirror, registries, registryCredentials },
  });

  const { files, tasks } = await payloadOf(recorder, "zoned-test-web-1");

  expect(tasks).toEqual(["registries", "registry-credentials"]);
  const paths = files.map(({ path }) => path);
  const login = paths.indexOf("/var/lib/kubelet/config.json");
  expect(files[login]!.content).toContain('"ghcr.io"');
  // A pull in between would show it to the mirror.
  expect(paths.slice(0, login)).toEqual(
    expect.arrayContaining(
      ["ghcr.io", "ourimages.azurecr.io"].map(
        (server) => `/etc/containerd/certs.d/${server}/hosts.toml`,
      ),
    ),
  );
});

it("labels the node of a worker once it has joined, and again when its machine is another one", async () => {
  const labels = { tier: "web" };
  const { recorder } = await build({
    settings: { ...settings, workerPools: [{ ...pool, count: 1, labels }] },
  });

  const patch = await recorder.only("kubernetes:core/v1:NodePatch");

  expect(patch.inputs.metadata).toEqual({
    name: "zoned-test-workers-1",
    labels,
    annotations: { "zoned/machine": "id of zoned-test-workers-1-vm" },
  });
  expect(await awaitedBy(patch)).toEqual(["zoned-test-workers-1-bootstrap"]);
});

it("is labelled by a preview where its step has ended well before, for there may be no Node else, which no preview patches", async () => {
  const { recorder } = await build({
    ...{ preview: true, initialization: existing },
    existing: ["zoned-test-cp-1", "zoned-test-web-1"],
  });

  const patches = await recorder.of("kubernetes:core/v1:NodePatch");
  const known = patches.filter(
    ({ inputs }) => typeof inputs.metadata.annotations["zoned/machine"] === "string",
  );
  expect(known.map(({ name }) => name)).toEqual(["zoned-test-web-1-labels"]);
});

it("applies no patch for a worker that goes, which would make its Node anew, and takes labels away by an update", async () => {
  const patches = await firstUp.recorder.of("kubernetes:core/v1:NodePatch");

  expect(patches.length).toBe(firstUp.plan.workers.length);
  for (const { inputs, opts } of patches) {
    expect(inputs.metadata.labels).toEqual({});
    expect(opts.retainOnDelete).toBe(true);
  }
});

it("registers no token in clear", async () => {
  const { recorder } = firstUp;
  const { secret } = deriveToken("private join secret", `zoned-test-web-1/${now}`);

  const marked = (value: unknown): boolean =>
    (value as Record<string, unknown>)?.[pulumi.runtime.specialSigKey] !== undefined;
  const inClear = JSON.stringify(
    (await recorder.all()).map(({ inputs }) => inputs),
    (_key, value) => (marked(value) ? "hidden" : value),
  );

  expect(inClear).not.toContain(secret);
  expect(inClear).toContain("hidden");
});

/** A member that comes to have another room for pods is drained before. */
it.each([
  ["the kubelet's default", {}, pool, 110, 110],
  ["what kubeletExtraArgs say", { "max-pods": "60" }, pool, 60, 60],
  ["what they say in Go's way", { "max-pods": "0b11_1100" }, pool, 60, 60],
  ["what its pool says", {}, { ...pool, maxPods: 30 }, 30, 110],
])(
  "tells a machine how many pods its kubelet takes: %s",
  async (_, kubeletExtraArgs, one, maxPods, ofControlPlane) => {
    const kubeadm = { ...validSettings.kubeadm, kubeletExtraArgs };
    const { recorder } = await build({
      settings: { controlPlaneCount: 1, kubeadm, workerPools: [{ ...one, name: "web", count: 1 }] },
    });

    const ofMachine = async (name: string) => {
      const payload = await payloadOf(recorder, `zoned-test-${name}`);
      return [payload.maxPods, payload.room];
    };
    expect(await ofMachine("web-1")).toEqual([maxPods, roomOf({ kubeadm }, maxPods)]);
    expect(await ofMachine("cp-1")).toEqual([ofControlPlane, roomOf({ kubeadm }, ofControlPlane)]);
  },
);
