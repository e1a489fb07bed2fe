import * as authorization from "@pulumi/azure-native/authorization";
import * as pulumi from "@pulumi/pulumi";

import type { Settings } from "../settings/settings";
import { ArmClient } from "./resource-manager";

/** Azure as the operator's login reaches it. */
export interface AzureConnection extends Subscription {
  readonly arm: ArmClient;
}

interface Subscription {
  readonly subscriptionId: string;
  readonly tenantId: string;
}

/**
 * Asks Azure's plugin for one token. For each, and for who has logged in, it runs `az`, which takes a second.
 *
 * @throws RunError when there is no login, or no subscription of it
 */
export async function connect({ resourceManagerEndpoint }: Settings): Promise<AzureConnection> {
  const { token } = await ofLogin(authorization.getClientToken());
  const arm = new ArmClient(resourceManagerEndpoint, token);
  const { subscriptionId, tenantId } =
    (await plainSubscription(arm)) ?? (await ofLogin(authorization.getClientConfig()));
  if (!subscriptionId) {
    throw new pulumi.RunError(
      "the login has no subscription: az account list --output table; az account set --subscription SUBSCRIPTION",
    );
  }
  return { subscriptionId, tenantId, arm };
}

/** The subscription that the plugin is told, or the only one that there is; of several only it knows which. */
async function plainSubscription(arm: ArmClient): Promise<Subscription | undefined> {
  const version = { "api-version": "2022-12-01" };
  const example = { subscriptionId: "", tenantId: "" };
  const named =
    new pulumi.Config("azure-native").get("subscriptionId") ?? process.env.ARM_SUBSCRIPTION_ID;
  if (named) return arm.get<Subscription>(`/subscriptions/${named}`, version, example);
  const [only, ...others] = await arm.list<Subscription>("/subscriptions", version, example);
  return others.length === 0 ? only : undefined;
}

const ofLogin = <T>(answer: Promise<T>): Promise<T> =>
  answer.catch(({ message }: Error) => {
    throw new pulumi.RunError(
      `Pulumi's plugin for Azure has no login that works: ${message}\n` +
        "  Log in and choose the subscription, then run again: az login; az account set --subscription SUBSCRIPTION. " +
        "A service principal: set ARM_CLIENT_ID, ARM_CLIENT_SECRET, ARM_TENANT_ID and ARM_SUBSCRIPTION_ID.",
    );
  });
