import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

import { checkout } from "../../../shared/checkout";
import { account } from "../../arm/resources/ids";
import { claimsOf } from "../../machines/identity-token";

/** As azure-native runs it: from another folder. */
async function az(...args: string[]): Promise<Record<string, unknown>> {
  const program = join(checkout, "tools/local-azure/login/az");
  const env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` };
  const { stdout } = await promisify(execFile)(program, args, { cwd: "/", env });
  return JSON.parse(stdout);
}

const { subscriptionId: id, tenantId, objectId: oid, clientId: appid } = account;

it("shows the subscription and its user", async () => {
  const user = { name: appid, type: "servicePrincipal" };

  expect(await az("account", "show", "-o", "json", "--subscription", id)).toMatchObject({
    ...{ id, tenantId, user, isDefault: true, environmentName: "AzureCloud" },
  });
});

it("gives a token for what it is asked for, which ends in the future", async () => {
  const aud = "https://storage.azure.com";
  const token = await az("account", "get-access-token", "-o", "json", "--resource", aud);

  expect(claimsOf(token["accessToken"] as string)).toMatchObject({
    aud,
    oid,
    appid,
    tid: tenantId,
  });
  expect(token["expires_on"]).toBeGreaterThan(Date.now() / 1000);
});

it("refuses any other command", async () => {
  await expect(az("group", "list")).rejects.toThrow(/the local Azure's az has no command group/);
});
