import * as authorization from "@pulumi/azure-native/authorization";
import { RunError } from "@pulumi/pulumi";

import type { Settings } from "../settings/settings";
import { ResourceManager } from "./resource-manager";

/** Azure as the operator's login reaches it. */
export interface AzureConnection {
  readonly subscriptionId: string;
  readonly tenantId: string;
  readonly arm: ResourceManager;
}

/** @throws RunError when there is no login, or no subscription of it */
export async function connect({ resourceManagerEndpoint }: Settings): Promise<AzureConnection> {
  const [{ subscriptionId, tenantId }, { token }] = await Promise.all([
    authorization.getClientConfig(),
    authorization.getClientToken(),
  ]).catch(({ message }: Error) => {
    throw new RunError(
      `Pulumi's plugin for Azure has no login that works: ${message}\n` +
        "  Log in and choose the subscription, then run again: az login; az account set --subscription SUBSCRIPTION. " +
        "A service principal: set ARM_CLIENT_ID, ARM_CLIENT_SECRET, ARM_TENANT_ID and ARM_SUBSCRIPTION_ID.",
    );
  });
  if (!subscriptionId) {
    throw new RunError(
      "the login has no subscription: az account list --output table; az account set --subscription SUBSCRIPTION",
    );
  }
  return { subscriptionId, tenantId, arm: new ResourceManager(resourceManagerEndpoint, token) };
}
