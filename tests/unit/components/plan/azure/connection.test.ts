import * as pulumi from "@pulumi/pulumi";

import { connect } from "../../../../../components/plan/azure/connection";
import { Recorder } from "../../../../support/record";
import { validSettings } from "../../../../support/sample";

const account = { subscriptionId: "subscription", tenantId: "tenant" };

const connectionWith = async (config: () => object) => {
  await Recorder.start({
    calls: {
      "azure-native:authorization:getClientConfig": config,
      "azure-native:authorization:getClientToken": () => ({ token: "secret" }),
    },
  });
  return connect(validSettings);
};

it("is that of the login's subscription", async () => {
  expect(await connectionWith(() => account)).toMatchObject(account);
});

it("says what to do without a login, in the plugin's words and its own", async () => {
  const connection = connectionWith(() => {
    // As gRPC has it.
    throw Object.assign(new Error(), { details: "Please run 'az login' to setup account" });
  });

  await expect(connection).rejects.toThrow(
    /no login that works: .*Please run 'az login' to setup account.*\n.*az login; az account set --subscription .*ARM_CLIENT_ID/s,
  );
  await connection.catch((error: unknown) => expect(pulumi.RunError.isInstance(error)).toBe(true));
});

it("says what to do without a subscription", async () => {
  await expect(connectionWith(() => ({ ...account, subscriptionId: "" }))).rejects.toThrow(
    /no subscription: az account list .*az account set/,
  );
});
