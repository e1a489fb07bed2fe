import * as leftMachines from "../../components/plan/left-machines";
import { compactTime } from "../../components/settings/times";
import { versions } from "../../components/versions";
import { subscriptionPath } from "../../tools/local-azure/arm/resources/resource";
import { serveKubernetesApi } from "../support/kubernetes-api";
import { serveRefusingProxy } from "../support/listen";
import { awaitedBy } from "../support/machines";
import { type Before, nothing, planned, update, type Update } from "../support/program";
import { idIn } from "../support/sample";
import type { Values } from "../support/stack";
import { clusterIn } from "../../tools/cli/stack";

const common: Values = {
  etcdBackups: {
    every: "6h",
    container: idIn(
      "backups",
      "Microsoft.Storage/storageAccounts/zonedbackups/blobServices/default/containers/etcd",
    ),
  },
};
const ours: Values = {
  ...common,
  encryptionKeyGeneration: 4,
  caGeneration: 3,
  serviceAccountKeyGeneration: 5,
  tags: { team: "firm" },
  restoreFrom: "latest",
};
const ownEncryption: Values = {
  kubeadm: { apiServerExtraArgs: { "encryption-provider-config": "/etc/own/encryption.yaml" } },
};
const unasked = { restoreFrom: "", skipHealthCheckUntil: compactTime(Date.now() + 3_600_000) };

/** The stack after an update, and after one with an encryption of the operator's own. */
let after: Update;
let afterOwn: Update;
let kubeconfig: string;
beforeAll(async () => {
  after = await update(ours, { ...nothing, withoutDisks: /_ZRS$/ });
  afterOwn = await update({ ...common, ...ownEncryption });
  kubeconfig = await serveKubernetesApi((_, response) => response.end('{"items":[]}'));
});

/** Outputs without what is at this path, in which * is any name. */
const without = (
  outputs: object,
  [name, ...path]: readonly string[],
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(outputs).flatMap(([key, value]) => {
      if (key !== name && name !== "*") return [[key, value]];
      return path.length === 0 ? [] : [[key, without(value, path)]];
    }),
  );

interface Next {
  /** Of the settings. */
  readonly change?: Values;
  /** Of Azure. */
  readonly before?: Partial<Before>;
  /** What the next plan says, or is, only because of the output. */
  readonly says: (cluster: any) => RegExp;
}

/** The next plan as a text: what it says or why it is refused, and what it has decided. */
async function nextPlan(
  { change, before }: Next,
  from: Update,
  outputs: Readonly<Record<string, unknown>>,
): Promise<string> {
  const { plan, says } = await planned(
    { ...(from === after ? ours : common), ...change },
    {
      requests: from.requests,
      ...before,
      outputs: { ...outputs, kubeconfig: undefined },
    },
  );
  if (plan === undefined) return says;
  const { initialization, machineRecords, spec, diskClasses } = plan;
  return [
    says,
    `initialization ${initialization.id} by ${initialization.initialControlPlane}`,
    `Secrets ${spec.encryptionKeys?.keys.join()}, CAs ${spec.cas.keys.join()}`,
    `accounts ${spec.serviceAccountKeys.keys.join()}`,
    `tags of before ${plan.previous?.tags?.join()}`,
    `classes ${diskClasses.map(({ name }) => name).join()}`,
    ...[...machineRecords].map(
      ([name, { createdAt, bootstrapRequestedAt }]) =>
        `${name} of ${createdAt}, run ${bootstrapRequestedAt}`,
    ),
  ].join("\n");
}

const isUntagged = { before: { isUntagged: true } };
const cp1 = "zoned-test-cp-1";

/** By the path of an output. */
const readers: Readonly<Record<string, Next>> = {
  machines: { change: { zones: ["2", "1", "3"] }, says: () => /cp-1 would move from/ },
  "cluster.initialization": {
    ...isUntagged,
    says: ({ initialization }) => new RegExp(`initialization ${initialization} `),
  },
  "cluster.subscriptionId": {
    // The resource group is gone.
    before: { requests: [] },
    says: ({ subscriptionId }) =>
      new RegExp(`no resource group \\S+ in subscription ${subscriptionId}`),
  },
  "cluster.initialControlPlane": { ...isUntagged, says: () => / by id of zoned-test-cp-1-vm$/m },
  "cluster.controlPlanes": {
    before: { gone: [cp1, "zoned-test-cp-2"] },
    says: () => /had 3 control plane machine/,
  },
  "cluster.restoreFrom": {
    before: { gone: [cp1, "zoned-test-cp-2"] },
    says: () => /restoreFrom is latest, as it was before this loss/,
  },
  "cluster.settings": { change: { serviceCidr: "10.112.0.0/12" }, says: () => /serviceCidr is/ },
  "cluster.encryptionKeys": { says: () => /Secrets 4,/ },
  "cluster.cas": {
    ...isUntagged,
    change: { caGeneration: 4, ...unasked },
    says: () => /CAs 3,4$/m,
  },
  "cluster.serviceAccountKeys": {
    ...isUntagged,
    change: { serviceAccountKeyGeneration: 6, ...unasked },
    says: () => /accounts 5,6$/m,
  },
  "cluster.tags": { says: () => /tags of before team$/m },
  "cluster.ownEncryption": { says: () => /encrypted with the keys of that configuration/ },
  "cluster.storageClasses": {
    before: { withoutDisks: /_LRS$|_ZRS$/ },
    // What is left out is said once, by the first update.
    says: () => /^(?![^]*is left out)[^]*classes standard-ssd,(?!.*zrs)/,
  },
  "cluster.machines.*.generation": {
    ...isUntagged,
    change: { osDiskSizeGb: 256, ...unasked },
    says: () => /would replace zoned-test-cp-1/,
  },
  "cluster.machines.*.replacementInputs": {
    ...isUntagged,
    change: { osDiskSizeGb: 256, ...unasked },
    says: () => /osDiskSizeGb \d+ -> 256/,
  },
  "cluster.machines.*.createdAt": {
    ...isUntagged,
    says: ({ machines }) => new RegExp(`${cp1} of ${machines[cp1].createdAt}`),
  },
  "cluster.machines.*.bootstrapRequestedAt": {
    ...isUntagged,
    says: ({ machines }) => new RegExp(`${cp1} of .*, run ${machines[cp1].bootstrapRequestedAt}`),
  },
  "cluster.machines.*.kubernetesVersion": {
    ...isUntagged,
    change: { kubernetesVersion: versions.kubernetes.replace(/\d+$/, "20"), ...unasked },
    says: () => /would upgrade zoned-test-cp-1/,
  },
  "cluster.machines.*.configuration": {
    ...isUntagged,
    change: { apiExtraSans: ["api.example.com"], ...unasked },
    says: () => /would reconfigure zoned-test-cp-1/,
  },
};

it.each(Object.entries(readers))(
  "leaves %s for the next update, which reads it",
  async (path, next) => {
    const from = path === "cluster.ownEncryption" ? afterOwn : after;
    const says = next.says(from.outputs["cluster"]);

    expect(await nextPlan(next, from, from.outputs)).toMatch(says);
    const rest = await nextPlan(next, from, without(from.outputs, path.split("."))).catch(String);
    expect(rest).not.toMatch(says);
  },
);

const encrypted = {
  encryptionAtHost: true,
  diskEncryptionSetId: `${subscriptionPath}/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/ours`,
};

it("says which keys and issuers change, and what the next update does about them", async () => {
  const scope = `${subscriptionPath}/resourceGroups/shop`;
  const roles = [{ role: "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1", scope }];
  const changed = {
    ...{ caGeneration: 4, encryptionKeyGeneration: 5, serviceAccountKeyGeneration: 6 },
    workloadIdentities: [{ namespace: "shop", serviceAccount: "app", roles }],
  };

  const { says } = await planned({ ...ours, ...unasked, ...changed }, after);

  for (const does of [
    "trust CA 4",
    "read key 5",
    "admit tokens of service account key 6",
    "admit tokens of https://",
  ])
    expect(says).toMatch(new RegExp(`this update \\D*${does}`));
});

it("says that a setting is spent which was left behind", async () => {
  const reinitialize = "9-20260101T000000Z";

  const { says } = await planned({ ...ours, ...unasked, reinitialize }, after);

  expect(says).toContain("the setting does nothing any more");
});

it("makes machines anew whose disks are to be encrypted, and says what they were made without", async () => {
  const change = { ...encrypted, ...unasked };

  const says = await nextPlan({ change, says: () => /./ }, after, after.outputs);

  for (const name of [cp1, "zoned-test-workers-1"]) {
    expect(says).toMatch(
      `this change would replace ${name}: encryptionAtHost not set -> true, diskEncryptionSetId not set -> ${encrypted.diskEncryptionSetId.toLowerCase()}`,
    );
  }
});

it("leaves machines alone that have the encryption of the settings", async () => {
  const first = await update({ ...ours, ...encrypted });

  const { plan, says } = await planned({ ...ours, ...encrypted, ...unasked }, first);

  expect(says).not.toMatch(/would replace/);
  expect(plan?.retained.size).toBe(6);
});

it("leaves what `npm run doctor` compares the cluster with", () => {
  const { machines, ...cluster } = clusterIn(JSON.stringify(after.outputs), "prod");

  expect(cluster).toMatchObject({
    kubernetesVersion: versions.kubernetes,
    etcdBackups: "6h",
    encryptionKeys: { keys: [4] },
    cas: { keys: [3] },
    serviceAccountKeys: { keys: [5] },
  });
  expect(machines.map(({ name, role, zone }) => [name, role, zone])).toContainEqual([
    cp1,
    "control-plane",
    "southeastasia-1",
  ]);
  for (const one of machines) expect(one.kubeletCertificateUntil).toMatch(/^\d{4}-/);
});

describe("an update of a living cluster", () => {
  let next: Update;
  beforeAll(async () => {
    next = await update(ours, { ...after, addedTags: { owner: "somebody" } });
  });
  const named = (name: string) => next.requests.find((one) => one.name === name)!;

  it("sends what others have added since, and leaves a balancer alone that stays as it is", () => {
    for (const name of ["cluster", `${cp1}-vm`])
      expect(named(name).inputs["tags"]).toMatchObject({ team: "firm", owner: "somebody" });
    expect(named("api-lb").opts.ignoreChanges).toHaveLength(1);
  });

  it("touches no worker before every control plane is a member again", async () => {
    const steps = [1, 2, 3].map((number) => `zoned-test-cp-${number}-bootstrap`);

    expect(await awaitedBy(named("zoned-test-workers-1-vm"))).toEqual(
      expect.arrayContaining(steps),
    );
  });
});

describe("the order in which control planes are touched", () => {
  const cp = (number: number) => `zoned-test-cp-${number}`;
  const turnsOf = async (values: Values, before: Before) =>
    (await planned(values, before)).plan?.turns.map(({ name }) => name);
  const restoring = { ...ours, restoreFrom: "20261123T174128Z-42.db" };

  it("begins with the one that is lost", async () => {
    expect(await turnsOf(ours, { ...after, gone: [cp(2)] })).toEqual([cp(2), cp(1), cp(3)]);
  });

  it("is by number where a snapshot is restored, whichever of the cluster before are lost", async () => {
    const lost = { ...after, gone: [cp(2), cp(3)] };

    expect(await turnsOf(restoring, lost)).toEqual([cp(1), cp(2), cp(3)]);
    expect((await planned(restoring, lost)).says).toMatch(
      /whether snapshot \S+ of .* is not known/,
    );
  });

  it("is by number there also beside one that runs without a Node", async () => {
    jest.spyOn(leftMachines, "markLeft").mockImplementationOnce(async ({ azure }) => {
      const machine = azure.machines.get(cp(3))!;
      return { ...azure, machines: new Map([[cp(3), { ...machine, lacksNode: true }]]) };
    });

    const turns = await turnsOf(restoring, { ...after, gone: [cp(1), cp(2)] });

    expect(turns).toEqual([cp(1), cp(2), cp(3)]);
  });

  it("begins with the one that is lost also in a cluster that was restored", async () => {
    const restored = await update(restoring, { ...after, gone: [cp(2), cp(3)] });
    expect(restored.outputs["cluster"].initialization).toMatch(/Z-\d{8}T\d{6}Z$/);

    expect(await turnsOf(restoring, { ...restored, gone: [cp(3)] })).toEqual([cp(3), cp(1), cp(2)]);
  });
});

/** With the API of a cluster in which there is no Node. */
const withApi = (): Before => ({
  ...after,
  outputs: { ...after.outputs, kubeconfig },
});

it("asks whether control planes that go have joined, once those are known to be well that stay", async () => {
  const change = { ...ours, osDiskSizeGb: 256, ...unasked };

  expect((await planned(change, withApi())).says).toMatch(/may have joined \(no other/);
  const { says } = await planned({ ...change, skipHealthCheckUntil: "" }, withApi());
  expect(says).toMatch(/^(?![^]*may have joined)[^]*is not known to be well/);
});

it("keeps the kubeconfig of before at hand, for previews that do not know the one of now", async () => {
  const { plan } = await planned({ ...ours, ...unasked }, withApi());

  expect(JSON.parse(plan?.previousKubeconfig ?? "")).toEqual(JSON.parse(kubeconfig));
});

it("asks the living API through apiProxy", async () => {
  const { address: apiProxy, asked } = await serveRefusingProxy();

  await planned({ ...ours, apiProxy }, withApi());

  expect(asked[0]).toMatch(/^localhost:\d+$/);
});

it("refuses to give up a cluster for a snapshot of which nobody knows whether it is there", async () => {
  const { initialization: reinitialize } = after.outputs["cluster"];

  const { says } = await planned({ ...ours, reinitialize }, after);

  expect(says).toMatch(/cannot be deployed:\n {2}- whether a snapshot of cluster zoned-test is in/);
});

it("leaves nothing to the next update that none of these claims is about", () => {
  const names = [after, afterOwn].flatMap(({ outputs: { cluster } }) => [
    ...Object.keys(cluster).filter((name) => name !== "machines" && cluster[name] !== undefined),
    ...Object.keys(cluster.machines[cp1]).map((name) => `machines.*.${name}`),
  ]);
  const ofOthers = ["cluster.addOns", "cluster.balancer", "cluster.etcdBackups"];
  const known = [...Object.keys(readers), ...ofOthers];

  expect([...new Set(names)].filter((name) => !known.includes(`cluster.${name}`))).toEqual([]);
});
