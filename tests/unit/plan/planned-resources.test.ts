import { plannedResources } from "../../../components/plan/planned-resources";
import type { Settings } from "../../../components/settings/settings";
import { machinesOf } from "../../../components/settings/topology";
import { account } from "../../../tools/local-azure/arm/resources/resource";
import { schemaOf } from "../../../tools/local-azure/arm/types/resource-type";
import { typeOf } from "../../../tools/local-azure/arm/types/types";
import { update, type Update } from "../../support/program";
import type { Recorded } from "../../support/record";
import { validSettings } from "../../support/sample";
import { access, settingsWith, stackValues, type Values } from "../../support/stack";

const group = "Microsoft.Resources/subscriptions/resourceGroups";

const typeFor = (type: string) =>
  typeOf(type === group ? "Microsoft.Resources/resourceGroups" : type)!;

/** What has an id of something else cannot be compared: mocks give other ids. */
function partOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(partOf);
  if (typeof value !== "object" || value === null) return value;
  const { properties, ...others } = value as Record<string, unknown>;
  const flat = { ...others, ...(properties as object | undefined) };
  const entries = Object.entries(flat).filter(([key]) => key !== "id");
  return expect.objectContaining(
    Object.fromEntries(entries.map(([key, one]) => [key, partOf(one)])),
  );
}

const renamed = (inputs: Recorded["inputs"], names: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(inputs).map(([name, one]) => [names[name] ?? name, one]));

const isPrivate = { apiAccess: "private", egress: "none" };

describe.each<[string, Values]>([
  ["a public API and egress in zones", {}],
  ["nothing public", isPrivate],
  [
    "a single egress, and encrypted disks on hosts that encrypt",
    {
      egress: "single",
      encryptionAtHost: true,
      diskEncryptionSetId: `/subscriptions/${account.subscriptionId}/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/ours`,
    },
  ],
  [
    "nothing public, and a name and a pod network of one's own",
    { ...isPrivate, apiName: "api.zoned.example", cni: "none" },
  ],
  ["an issuer of tokens, by which the cluster's own pods log in", { machineIdentity: false }],
])("of a stack with %s", (_, change) => {
  const values = { tags: { costCenter: "4711", "Cost Center": "4711" }, ...change };
  let requests: Update["requests"];
  let planned: ReturnType<typeof plannedResources>;
  beforeAll(async () => {
    ({ requests } = await update(values));
    const all = { ...access, ...stackValues("prod"), clusterName: "zoned-test", ...values };
    const settings = settingsWith(all);
    planned = plannedResources(settings, machinesOf(settings), account.subscriptionId);
  });

  it("there is one of every type that an update makes", () => {
    const types = new Set(planned.map(({ content }) => typeFor(content.type).token));

    const made = requests
      .map(({ type }) => type)
      .filter((type) => type.startsWith("azure-native:"))
      // Resource Manager knows no blobs.
      .filter((type) => !/:authorization:|:SecurityRule$|:storage:Blob$/.test(type));
    expect([...types].sort()).toEqual([...new Set(made)].sort());
  });

  it("each has what the update sends, and is asked for in the API's version that sends it", () => {
    for (const { content, apiVersion } of planned) {
      const { token, armNames = {} } = typeFor(content.type);
      const { apiVersion: sent, inputs: known } = schemaOf(typeFor(content.type));
      const { type, name, location, ...rest } = content;
      const extension = type.endsWith("/extensions") ? { type: "CustomScript" } : {};
      const inputs = requests
        .filter((one) => one.type === token)
        .map((one) => renamed(one.inputs, armNames));
      expect(inputs).toContainEqual(partOf({ ...rest, ...extension }));
      // A policy may want no other tags than these.
      if (type === group) expect(inputs.map(({ tags }) => tags)).toEqual([rest.tags]);
      expect(inputs.some((one) => Object.values(one).includes(name))).toBe(true);
      expect([type, apiVersion]).toEqual([type, sent]);
      expect([type, location !== undefined]).toEqual([type, known.includes("location")]);
      expect([type, content.tags !== undefined]).toEqual([type, known.includes("tags")]);
    }
  });
});

const typesOf = (change: Partial<Settings>) => {
  const settings = { ...validSettings, ...change };
  const planned = plannedResources(settings, machinesOf(settings), account.subscriptionId);
  return new Set(planned.map(({ content }) => content.type.split("/").slice(1).join("/")));
};

it.each<[string, Partial<Settings>, readonly string[]]>([
  ["an identity", { identityId: "/ids/theirs" }, ["userAssignedIdentities"]],
  ["a resource group", { resourceGroup: "theirs" }, ["subscriptions/resourceGroups"]],
  [
    "subnets",
    { nodeSubnets: ["/ids/nodes"] },
    [
      "virtualNetworks",
      "networkSecurityGroups",
      "routeTables",
      "virtualNetworks/subnets",
      "natGateways",
    ],
  ],
])("there is none of what others have made: %s", (_, change, without) => {
  expect([...typesOf({})].filter((type) => !typesOf(change).has(type))).toEqual(without);
});

it.each<[string, Partial<Settings>, readonly string[]]>([
  [
    "service accounts that Entra knows as identities of others",
    {
      workloadIdentities: [
        { namespace: "a", serviceAccount: "b", identityId: "/ids/c", roles: [] },
      ],
    },
    [],
  ],
  [
    "service accounts that Entra knows as identities of this program's",
    {
      workloadIdentities: [{ namespace: "a", serviceAccount: "b", identityId: "", roles: [] }],
    },
    ["userAssignedIdentities/federatedIdentityCredentials"],
  ],
  [
    "machines that carry no identity",
    { machineIdentity: false },
    ["userAssignedIdentities/federatedIdentityCredentials"],
  ],
  [
    "machines that carry no identity, and one of others",
    { machineIdentity: false, identityId: "/ids/theirs" },
    [],
  ],
])("there is an account for the issuer's documents with %s, and else none", (_, change, more) => {
  expect([...typesOf(change)].filter((type) => !typesOf({}).has(type))).toEqual([
    "storageAccounts",
    "storageAccounts/blobServices/containers",
    ...more,
  ]);
});

it("in subnets of others, the API's balancer and the link of its zone are asked about there", () => {
  const network =
    "/subscriptions/5ca1ab1e-0000-4000-8000-000000000001/resourceGroups/hub/providers/Microsoft.Network/virtualNetworks/spoke";
  const nodeSubnets = [`${network}/subnets/nodes`];
  const settings = { ...validSettings, apiAccess: "private", nodeSubnets } as const;

  const planned = plannedResources(settings, machinesOf(settings), account.subscriptionId);

  const asked = JSON.stringify(planned.map(({ content }) => content));
  expect(asked).toContain(`"virtualNetwork":{"id":"${network}"}`);
  expect(asked).toContain(`"subnet":{"id":"${nodeSubnets[0]}"}}}]}}`);
  expect(asked).not.toMatch(/zoned-test-vnet|privateIPAddress"/);
});

it("there is a machine of each size and disk", () => {
  const [pool] = validSettings.workerPools;
  const workerPools = [
    pool!,
    { ...pool!, name: "large", size: "Standard_D8s_v5" },
    { ...pool!, name: "roomy", size: "Standard_D8s_v5", osDiskSizeGb: 512 },
  ];
  const settings = { ...validSettings, workerPools };

  const planned = plannedResources(settings, machinesOf(settings), account.subscriptionId);

  const kinds = planned.flatMap(({ standsFor }) => standsFor ?? []);
  expect(kinds.map(({ size }) => size)).toEqual([
    "Standard_D2s_v5",
    "Standard_D8s_v5",
    "Standard_D8s_v5",
  ]);
  const names = kinds.map((kind) => kind.names.map((name) => name.replace("zoned-test-", "")));
  expect(names).toEqual([
    ["cp-1", "cp-2", "cp-3", "workers-1", "workers-2", "workers-3"],
    ["large-1", "large-2", "large-3"],
    ["roomy-1", "roomy-2", "roomy-3"],
  ]);
});
