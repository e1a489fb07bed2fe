import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { versionsOf } from "../../../../../local-azure/arm/subscription/api-versions";
import { resourceTypes } from "../../../../../local-azure/arm/types/types";

const sdk = dirname(require.resolve("@pulumi/azure-native/package.json"));

/** The version that azure-native uses by default, as its package documents it. */
function defaultOf(token: string): string | undefined {
  const [, module = "", name = ""] = token.split(":");
  const folder = join(sdk, module);
  const file = readdirSync(folder).find(
    (one) => one.toLowerCase() === `${name.toLowerCase()}.d.ts`,
  );
  return /Uses Azure REST API version ([\w-]+)/.exec(
    readFileSync(join(folder, file ?? `${name}.d.ts`), "utf8"),
  )?.[1];
}

describe.each(resourceTypes.map((one) => [one.token, one] as const))("%s", (token, type) => {
  it("has the API version that azure-native uses by default", () => {
    expect(type.apiVersion).toBe(defaultOf(token));
  });

  it("is taken in that version", () => {
    expect(versionsOf(type.type)).toContain(defaultOf(token));
  });
});
