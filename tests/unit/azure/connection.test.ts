import { createServer, type Server } from "node:http";

import * as pulumi from "@pulumi/pulumi";

import { connect } from "../../../components/azure/connection";
import { listen } from "../../support/listen";
import { Recorder } from "../../support/record";
import { validSettings } from "../../support/sample";

const of = (subscriptionId: string) => ({
  subscriptionId,
  tenantId: `tenant of ${subscriptionId}`,
});

let server: Server;
let asked: string[];
const { ARM_SUBSCRIPTION_ID } = process.env;
beforeEach(() => {
  delete process.env["ARM_SUBSCRIPTION_ID"];
  asked = [];
});
afterEach(() => {
  if (ARM_SUBSCRIPTION_ID !== undefined) process.env["ARM_SUBSCRIPTION_ID"] = ARM_SUBSCRIPTION_ID;
  pulumi.runtime.setAllConfig({});
  server.close();
});

/** A login that sees these subscriptions, the last of which is its own. */
const connection = async (
  subscriptions: readonly string[],
  login = () => of(subscriptions.at(-1) ?? ""),
) => {
  server = createServer(({ url = "" }, response) => {
    const [, id] = /^\/subscriptions\/([\w-]+)\?/.exec(url) ?? [];
    response.end(JSON.stringify(id ? of(id) : { value: subscriptions.map(of) }));
  });
  await Recorder.start({
    calls: {
      "azure-native:authorization:getClientConfig": () => {
        asked.push("getClientConfig");
        return login();
      },
      "azure-native:authorization:getClientToken": () => {
        asked.push("getClientToken");
        login();
        return { token: "secret" };
      },
    },
  });
  const resourceManagerEndpoint = `http://127.0.0.1:${await listen(server)}`;
  return connect({ ...validSettings, resourceManagerEndpoint });
};

it("is that of the only subscription, or of the login's among several", async () => {
  expect(await connection(["one"])).toMatchObject(of("one"));
  expect(asked).toEqual(["getClientToken"]);
  server.close();
  expect(await connection(["other", "own"])).toMatchObject(of("own"));
});

it.each<[where: string, name: () => void]>([
  ["ARM_SUBSCRIPTION_ID", () => (process.env["ARM_SUBSCRIPTION_ID"] = "named")],
  [
    "the plugin's setting, whatever ARM_SUBSCRIPTION_ID says",
    () => {
      process.env["ARM_SUBSCRIPTION_ID"] = "other";
      pulumi.runtime.setConfig("azure-native:subscriptionId", "named");
    },
  ],
])(
  "is that of the subscription in %s, and asks the plugin for nothing but a token",
  async (_, name) => {
    name();

    expect(await connection(["own", "named"])).toMatchObject(of("named"));
    expect(asked).toEqual(["getClientToken"]);
  },
);

it("says what to do without a login, in the plugin's words and its own", async () => {
  const refused = connection(["one"], () => {
    // As gRPC has it.
    throw Object.assign(new Error(), { details: "Please run 'az login' to setup account" });
  });

  await expect(refused).rejects.toThrow(
    /no login that works: .*Please run 'az login' to setup account.*\n.*az login; az account set --subscription .*ARM_CLIENT_ID/s,
  );
  await refused.catch((error: unknown) => expect(pulumi.RunError.isInstance(error)).toBe(true));
});

it("says what to do without a subscription", async () => {
  await expect(connection([])).rejects.toThrow(/no subscription: az account list .*az account set/);
});
