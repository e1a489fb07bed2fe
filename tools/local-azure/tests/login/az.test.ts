import { execFile } from "node:child_process";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";

import { account } from "../../arm/resources/ids";
import { claimsOf } from "../../machines/identity-token";
import { checkout } from "../../../shared/checkout";

/** As azure-native runs it: by a shell, from another folder. */
async function az(...args: string[]): Promise<Record<string, unknown>> {
  const path = [
    join(checkout, "tools/local-azure/login"),
    dirname(process.execPath),
    "/usr/bin",
    "/bin",
  ];
  const options = { cwd: "/bin", env: { PATH: path.join(delimiter) } };
  const { stdout } = await promisify(execFile)("/bin/sh", ["-c", `az ${args.join(" ")}`], options);
  return JSON.parse(stdout) as Record<string, unknown>;
}

const { subscriptionId: id, tenantId, objectId, clientId } = account;

it("shows the subscription of the local Azure", async () => {
  expect(await az("account", "show", "-o", "json", "--subscription", id)).toMatchObject({
    ...{ id, tenantId, isDefault: true },
    ...{ environmentName: "AzureCloud", user: { name: clientId } },
  });
});

it("gives a token of the local Azure's login, for what it is asked for", async () => {
  const resource = "https://storage.azure.com";
  const args = ["account", "get-access-token", "-o", "json", "--resource", resource];
  const { accessToken, expires_on: end } = await az(...args, "--subscription", `"${id}"`);

  expect(claimsOf(accessToken as string)).toMatchObject({
    ...{ aud: resource, oid: objectId, appid: clientId, tid: tenantId },
  });
  expect(end).toBeGreaterThan(Date.now() / 1000);
});

it("refuses any other command", async () => {
  await expect(az("group", "list")).rejects.toThrow(/the local Azure's az has no command group/);
});
