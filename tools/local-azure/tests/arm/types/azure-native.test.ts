import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { parseId } from "../../../arm/resources/ids";
import { versionsOf } from "../../../arm/subscription/api-versions";
import { resourceTypes, typeOf } from "../../../arm/types/types";
import { newArm } from "../../support/arm/fixture";
import { group, roleDefinition, storage, valid } from "../../support/arm/valid-resources";

const sdk = dirname(require.resolve("@pulumi/azure-native/package.json"));

/** A file of azure-native's package about the resource of a token, by its ending. */
function file(token: string, ending: ".d.ts" | ".js"): string {
  const [, module = "", name = ""] = token.split(":");
  const folder = join(sdk, module);
  const found = readdirSync(folder).find(
    (one) => one.toLowerCase() === `${name}${ending}`.toLowerCase(),
  );
  return readFileSync(join(folder, found ?? `${name}${ending}`), "utf8");
}

/** The version that azure-native uses by default. */
const defaultOf = (token: string): string | undefined =>
  /Uses Azure REST API version ([\w-]+)/.exec(file(token, ".d.ts"))?.[1];

describe.each(resourceTypes.map((one) => [one.token, one] as const))("%s", (token, type) => {
  it("has the API version that azure-native uses by default", () => {
    expect(type.apiVersion).toBe(defaultOf(token));
  });

  it("is taken in that version", () => {
    expect(versionsOf(type.type)).toContain(defaultOf(token));
  });

  it("has the defaults that azure-native's package puts in", () => {
    const found = [...file(token, ".js").matchAll(/\["(\w+)"\] = \(args\?\.\w+\) \?\? (.+);/g)];
    const defaults = found.map(([, name, value]) => [name, JSON.parse(value!) as unknown]);

    expect(type.defaults ?? {}).toEqual(Object.fromEntries(defaults));
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
    return [id, /readonly provisioningState: /.test(file(token, ".d.ts"))];
  });
  expect(shown).toEqual(documented);
});
