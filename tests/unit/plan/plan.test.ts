import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as pulumi from "@pulumi/pulumi";

import { makePlan } from "../../../components/plan/plan";
import { loadSettings } from "../../../components/settings/load";
import { manifests } from "../../../components/versions";
import type { ResourceManager } from "../../../tools/local-azure/arm/resource-manager";
import { subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { serveRest } from "../../../tools/local-azure/arm/rest/rest";
import { checkConfig, checked } from "../../../tools/local-azure/plugins/kubernetes/check";
import { newArm } from "../../../tools/local-azure/tests/support/arm/fixture";
import { filledIn } from "../../support/program";
import { Recorded, Recorder } from "../../support/record";
import { access, settingsWith, stackValues, Values } from "../../support/stack";
import { testFolder } from "../../support/test-folder";

/** Works with the settings of a stack, on a local Azure without the engine. */
async function withStack<T>(
  stack: string,
  more: Values,
  work: (recorder: Recorder, arm: ResourceManager) => Promise<T>,
): Promise<T> {
  const { arm } = newArm();
  const rest = await serveRest(arm, 0);
  const values = {
    ...access,
    ...stackValues(stack),
    clusterName: "zoned-test",
    cni: "flannel",
    diskDriver: false,
    resourceManagerEndpoint: `http://127.0.0.1:${rest.port}`,
    ...more,
  };
  const recorder = await Recorder.start({
    calls: {
      "azure-native:authorization:getClientToken": () => ({ token: "local" }),
    },
    filledIn,
  });
  settingsWith(values);
  try {
    return await work(recorder, arm);
  } finally {
    await rest.close();
  }
}

/** Everything that the whole program asks for, with the settings of a stack. */
const planOf = (stack: string): Promise<readonly Recorded[]> =>
  withStack(stack, {}, async (recorder) => {
    await pulumi.runtime.runInPulumiStack(async () => {
      pulumi.runtime.registerStackTransformation(recorder.watch);
      const program = require("../../../index") as () => Promise<unknown>;
      return program();
    });
    return recorder.all();
  });

const azure = (plan: readonly Recorded[]) =>
  plan.filter(({ type }) => type.startsWith("azure-native:"));

/** Every text in an input that is not marked secret. */
function texts(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  if ("4dabf18193072939515e22adb298388d" in value) return [];
  return Object.values(value).flatMap(texts);
}

/** What the stand-in for the kubernetes plugin refuses of a plan. */
function refusedOf(plan: readonly Recorded[]): readonly unknown[] {
  const request = { urn: "urn", olds: {}, signal: new AbortController().signal };
  return plan.flatMap(({ type, inputs }) => {
    if (type === "pulumi:providers:kubernetes") return checkConfig(inputs).failures ?? [];
    if (!type.startsWith("kubernetes:")) return [];
    return checked({ ...request, type, news: inputs }).failures ?? [];
  });
}

const theirs = `${subscriptionPath}/resourceGroups/theirs`;
const identities = `${theirs}/providers/Microsoft.ManagedIdentity/userAssignedIdentities`;

it("names a missing manifest beside all that Azure would refuse", async () => {
  const folder = testFolder();
  for (const { path } of manifests.canal) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), "another file");
  }
  const before = { ...process.env };
  process.env = { ...before, ZONED_MANIFESTS: folder, XDG_CACHE_HOME: folder };
  try {
    const values = {
      ...{ cni: "canal", controlPlaneSize: "Standard_X9", identityId: `${identities}/one` },
      workloadIdentities: [
        { namespace: "shop", serviceAccount: "till", identityId: `${identities}/other` },
      ],
      diskEncryptionSetId: `${theirs}/providers/Microsoft.Compute/diskEncryptionSets/keys`,
      nodeSubnets: [`${theirs}/providers/Microsoft.Network/virtualNetworks/spoke/subnets/nodes`],
    };
    const planning = withStack("dev", values, () => makePlan(loadSettings()));

    await expect(planning).rejects.toThrow(
      /- identityId is .*- workloadIdentities names .*- diskEncryptionSetId is .*no subnet .*canal.*has another file.*Standard_X9 is not offered.*owners of the network, as one text/s,
    );
  } finally {
    process.env = before;
  }
});

it("names each setting whose id is in a subscription that there is not, beside what else is wrong", async () => {
  const elsewhere = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/theirs";
  const identity = `${elsewhere}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/one`;
  const values = {
    ...{ identityId: identity, kubeletIdentityId: `${identity}-more` },
    nodeSubnets: [`${elsewhere}/providers/Microsoft.Network/virtualNetworks/spoke/subnets/nodes`],
    image: `${elsewhere}/providers/Microsoft.Compute/galleries/zoned/images/node/versions/1.0.0`,
    registries: [`${elsewhere}/providers/Microsoft.ContainerRegistry/registries/images`],
    workloadIdentities: [{ namespace: "shop", serviceAccount: "till", identityId: identity }],
    controlPlaneSize: "Standard_X9",
  };

  const refused = await withStack("dev", values, () => makePlan(loadSettings())).catch(
    ({ message }: Error) => message,
  );

  for (const says of [
    "identityId is",
    "kubeletIdentityId is",
    "Azure has no subnet",
    "image is",
    "registries[0] is",
    "workloadIdentities names",
  ])
    expect(refused).toContain(`- ${says}`);
  expect(refused).toContain("Standard_X9 is not offered");
});

it("warns of what the kubelets' identity lacks at a registry, where it refuses something else", async () => {
  const registry = `${theirs}/providers/Microsoft.ContainerRegistry/registries/images`;
  const kubeletIdentityId = `${identities}/kubelets`;
  const values = { registries: [registry], kubeletIdentityId, controlPlaneSize: "Standard_X9" };
  const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);

  const planning = withStack("dev", values, async (_, arm) => {
    await arm.put(theirs, { location: "westeurope" });
    await arm.put(registry, { location: "westeurope", sku: { name: "Basic" } });
    await arm.put(kubeletIdentityId, { location: "westeurope" });
    return makePlan(loadSettings());
  });

  await expect(planning).rejects.toThrow(/Standard_X9 is not offered/);
  expect(warn).toHaveBeenCalledWith(
    expect.stringMatching(/kubelets lacks rights.*--role 'AcrPull' --scope .*images/s),
  );
  warn.mockRestore();
});

it("names the locks at registries under which it could not assign, and of those that keep what it assigns", async () => {
  const [ours, others] = ["ourimages", "others"].map(
    (name) => `${theirs}/providers/Microsoft.ContainerRegistry/registries/${name}`,
  ) as [string, string];
  const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);

  const planning = withStack("dev", { registries: [ours, others] }, async (_, arm) => {
    await arm.put(theirs, { location: "westeurope" });
    for (const [id, level] of [
      [ours, "ReadOnly"],
      [others, "CanNotDelete"],
    ] as const) {
      await arm.put(id, { location: "westeurope", sku: { name: "Basic" } });
      await arm.put(`${id}/providers/Microsoft.Authorization/locks/keep`, { level });
    }
    return makePlan(loadSettings());
  });

  await expect(planning).rejects.toThrow(/ourimages is ReadOnly, under which Azure makes no role/);
  expect(warn).toHaveBeenCalledWith(
    expect.stringMatching(/others is CanNotDelete: .* take away the role assignments/),
  );
  warn.mockRestore();
});

it("says how a private API is reached, what routes and who has a lock have to do, where it refuses something else", async () => {
  const isPrivate = { apiAccess: "private", apiAccessCidrs: [], egress: "none" };
  const values = { ...isPrivate, controlPlaneSize: "Standard_X9" };
  const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);

  const planning = withStack("dev", values, async (_, arm) => {
    const lock = `${subscriptionPath}/providers/Microsoft.Authorization/locks/keep`;
    await arm.put(lock, { level: "CanNotDelete" });
    return makePlan(loadSettings());
  });

  await expect(planning).rejects.toThrow(/Standard_X9 is not offered/);
  for (const text of ["Three ways lead there", "egress is none", "the lock keep on "])
    expect(warn).toHaveBeenCalledWith(expect.stringContaining(text));
  warn.mockRestore();
});

describe.each(["local", "dev", "prod"])("the whole plan of stack %s", (stack) => {
  let plan: readonly Recorded[];
  beforeAll(async () => {
    plan = await planOf(stack);
  });

  it("asks for nothing that only the official kubernetes plugin has", () => {
    expect(plan.filter(({ type }) => type.startsWith("kubernetes:"))).not.toEqual([]);
    expect(refusedOf(plan)).toEqual([]);
  });

  it("has machines, and a step on each", () => {
    const of = (type: string) => plan.filter((one) => one.type === `azure-native:compute:${type}`);

    expect(of("VirtualMachine").length).toBe(stack === "prod" ? 6 : 3);
    expect(of("VirtualMachineExtension").length).toBe(of("VirtualMachine").length);
  });

  it("names one zone for every machine, and zones for every address", () => {
    for (const { type, name, inputs } of azure(plan)) {
      if (type.endsWith(":VirtualMachine")) expect([name, inputs.zones.length]).toEqual([name, 1]);
      if (type.endsWith(":PublicIPAddress")) {
        expect([name, inputs.zones.length > 0]).toEqual([name, true]);
      }
    }
  });

  it("holds nothing of Azure back until the cluster is initialized", () => {
    const inCluster = new Map(plan.map(({ resource, opts }) => [resource, opts.provider]));
    for (const { name, opts } of azure(plan)) {
      const above: unknown[] = [];
      for (
        let one = opts;
        one?.parent;
        one = plan.find(({ resource }) => resource === one.parent)?.opts ?? {}
      ) {
        above.push(inCluster.get(one.parent));
      }
      expect([name, above.filter((provider) => provider !== undefined)]).toEqual([name, []]);
    }
  });

  it("gives a public address to nothing but the balancer and the NAT gateways", () => {
    const holders = azure(plan)
      .filter(({ inputs }) => /publicIpAddress/i.test(JSON.stringify(inputs)))
      .map(({ type }) => type.split(":").at(-1));

    expect(new Set(holders)).toEqual(new Set(["PublicIPAddress", "LoadBalancer", "NatGateway"]));
  });

  it("admits nobody from anywhere", () => {
    const rules = azure(plan).filter(
      ({ type, inputs }) => type.endsWith(":SecurityRule") && inputs.access === "Allow",
    );

    expect(rules.length).toBeGreaterThan(1);
    for (const { inputs } of rules) {
      // Of Azure's own groups of addresses only the one that probes.
      expect([undefined, "AzureLoadBalancer"]).toContain(inputs.sourceAddressPrefix);
      for (const from of inputs.sourceAddressPrefixes ?? []) {
        expect(from).toMatch(/^\d+\.\d+\.\d+\.\d+(\/([1-9]|[12]\d|3[0-2]))?$/);
      }
    }
  });

  it("lets every child of the resource group go with it, a step with its VM, and nothing else", () => {
    // Roles are the subscription's, and Azure deletes none that is assigned.
    const goesByItself = /reads-providers|attaches-disks|identity-(zones|machines)$/;
    const group = plan.find(({ type }) => type.endsWith(":ResourceGroup"))!;
    for (const { name, opts } of azure(plan).filter((one) => one !== group)) {
      const goesWith =
        opts.deletedWith && plan.find((one) => one.resource === opts.deletedWith)!.name;
      // Of what is nested in a VM, Azure is asked nothing, and the engine keeps it until all that depends on it has gone.
      const isStep = name.endsWith("-bootstrap");
      const expected = goesByItself.test(name) || isStep ? undefined : group.name;
      expect([name, goesWith, opts.retainOnDelete ?? false]).toEqual([name, expected, isStep]);
    }
  });

  it("has no key in any input that is not marked secret", () => {
    for (const { type, name, inputs } of plan.filter(({ type }) => !type.startsWith("tls:"))) {
      const open = texts(inputs).flatMap((text) => [text, Buffer.from(text, "base64").toString()]);
      const keys = /that nobody may see|EncryptionConfiguration/;
      expect([type, name, open.filter((text) => keys.test(text))]).toEqual([type, name, []]);
    }
  });
});
