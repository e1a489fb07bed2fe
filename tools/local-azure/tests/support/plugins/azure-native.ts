import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { get } from "node:https";
import { text } from "node:stream/consumers";

import type { Properties } from "../../../plugins/protocol/values";
import { serve } from "../../../plugins/protocol/serve";

interface Endpoints {
  readonly resourceManager: string;
  readonly authentication: { readonly audiences: readonly string[] };
}

const { version } = JSON.parse(
  readFileSync(require.resolve("@pulumi/azure-native/package.json"), "utf8"),
) as { version: string };

const { ARM_METADATA_HOSTNAME: host, ARM_SUBSCRIPTION_ID: id, SSL_CERT_FILE: file } = process.env;

const az = <T>(...args: string[]): T =>
  JSON.parse(execFileSync("az", [...args, "-o", "json"], { encoding: "utf8" })) as T;

const ask = <T>(url: string, token = ""): Promise<T> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    get(url, { ca: readFileSync(file!), headers }, (answer) => {
      text(answer).then((body) => resolve(JSON.parse(body) as T), reject);
    }).on("error", reject);
  });

/** Whom the plugin is logged in as, and where. */
async function clientConfig(): Promise<Properties> {
  const { resourceManager, authentication } = await ask<Endpoints>(
    `https://${host}/metadata/endpoints?api-version=2022-09-01`,
  );
  const resource = ["--resource", authentication.audiences[0]!];
  const { accessToken } = az<{ accessToken: string }>("account", "get-access-token", ...resource);
  const url = `${resourceManager}subscriptions/${id}?api-version=2022-12-01`;
  const { subscriptionId } = await ask<{ subscriptionId: string }>(url, accessToken);
  const { tenantId } = az<{ tenantId: string }>("account", "show");
  return { subscriptionId, tenantId, clientId: "of the plugin", objectId: resourceManager };
}

const refuse = async (): Promise<never> => {
  throw new Error("this plugin has no resources");
};

/**
 * In the place of Pulumi's own plugin for Azure, which it is not: it finds Azure and its login by the
 * same environment, and answers one function.
 */
const connect = () => ({
  check: refuse,
  diff: refuse,
  create: refuse,
  read: refuse,
  update: refuse,
  delete: refuse,
  invoke: clientConfig,
});

void serve({ version, connect }, 0).then(({ port }) => console.log(port));
