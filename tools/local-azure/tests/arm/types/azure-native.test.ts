import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { idTemplates } from "../../../../recover/azure";
import { Durations } from "../../../arm/durations";
import { parseId } from "../../../arm/resources/resource";
import { versionsOf } from "../../../arm/subscription/providers";
import { schemaOf } from "../../../arm/types/resource-type";
import { resourceTypes, typeOf } from "../../../arm/types/types";
import { newArm } from "../../support/arm/fixture";
import { group, roleDefinition, storage, valid } from "../../support/arm/valid-resources";

const sdk = dirname(require.resolve("@pulumi/azure-native/package.json"));

/** What azure-native's package declares of the resource of a token. */
function declared(token: string): string {
  const [, module = "", name = ""] = token.split(":");
  const folder = join(sdk, module);
  const wanted = `${name}.d.ts`.toLowerCase();
  const found = readdirSync(folder).find((one) => one.toLowerCase() === wanted);
  return readFileSync(join(folder, found!), "utf8");
}

describe.each(resourceTypes.map((one) => [one.token, one] as const))("%s", (token, type) => {
  const schema = schemaOf(type);
  const [, args = ""] = declared(token).split("Args {");

  it("has the inputs that azure-native's package declares, but for the path's", () => {
    const names = [...args.matchAll(/^ {4}(\w+)\??: /gm)].map(([, name]) => name!);
    const own = names.filter((name) => !idTemplates[token]!.includes(`{${name}}`));
    const ofReference = own.includes("id") ? ["id", "name", "type"] : [];
    const foreign = [...ofReference, ...(type.readOnly ?? [])];

    expect(schema.inputs).toEqual([
      ...own.filter((name) => !foreign.includes(name)),
      ...(type.besides ?? []),
    ]);
  });

  if (type.lock) {
    it("takes time, without which nothing meets its lock", () => {
      const durations = new Durations({ factor: 1 });

      for (const operation of ["create", "update", "delete"] as const) {
        expect(durations.milliseconds(type.type, operation)).toBeGreaterThan(0);
      }
    });
  }

  it("wants those that have to be there", () => {
    const names = [...args.matchAll(/^ {4}(\w+): /gm)].map(([, name]) => name!);
    const own = names.filter((name) => !idTemplates[token]!.includes(`{${name}}`));

    expect(schema.required).toEqual([...own, ...(type.required ?? [])]);
  });

  it("has ids of its type", () => {
    const id = idTemplates[token]!.replace("/{scope}", group)
      .replace("{recordType}", "A")
      .replaceAll(/\{\w+\}/g, "one");

    expect(parseId(id)!.type).toBe(type.type);
  });

  it("is taken in the version that azure-native uses", () => {
    expect(schema.apiVersion).toMatch(/^\d{4}-\d\d-\d\d/);
    expect(versionsOf(type.type)).toContain(schema.apiVersion);
  });
});

it("has the defaults that azure-native's package puts in", () => {
  const filled = resourceTypes.map((one) => [one.type.split("/").at(-1), schemaOf(one).defaults]);

  expect(
    Object.fromEntries(filled.filter(([, values]) => Object.keys(values!).length > 0)),
  ).toEqual({
    policyAssignments: { enforcementMode: "Default" },
    policyDefinitions: { mode: "Indexed" },
    policyExemptions: { assignmentScopeValidation: "Default" },
    registries: {
      adminUserEnabled: false,
      anonymousPullEnabled: false,
      networkRuleBypassOptions: "AzureServices",
      publicNetworkAccess: "Enabled",
      zoneRedundancy: "Disabled",
    },
    roleAssignments: { principalType: "User" },
    subnets: {
      privateEndpointNetworkPolicies: "Disabled",
      privateLinkServiceNetworkPolicies: "Enabled",
    },
    virtualNetworks: { enableDdosProtection: false, enableVmProtection: false },
  });
});

it("shows a provisioning state of the types whose outputs have one in azure-native, and of no other", async () => {
  const { arm } = newArm();
  const location = "westeurope";
  const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/zoned`;
  const role = {
    roleName: "reads",
    permissions: [{ actions: ["*/read"] }],
    assignableScopes: [group],
  };
  const all = [
    ...Object.values(valid),
    [identity, { location }] as const,
    [roleDefinition("00000000-0000-4000-8000-000000000007"), role] as const,
    [storage("/blobServices/default"), {}] as const,
  ];
  for (const [id, body] of all) await arm.put(id, body);

  const shown = all.map(([id]) => [id, "provisioningState" in arm.peek(id)!]);

  const documented = all.map(([id]) => {
    const { token } = typeOf(parseId(id)!.type)!;
    return [id, /readonly provisioningState: /.test(declared(token))];
  });
  expect(shown).toEqual(documented);
});
