import * as authorization from "@pulumi/azure-native/authorization";

import type { Settings } from "../settings/settings";
import { ResourceManager } from "./resource-manager";

/** Azure as the operator's login reaches it. */
export interface AzureConnection {
  readonly subscriptionId: string;
  readonly tenantId: string;
  readonly arm: ResourceManager;
}

export async function connect({ resourceManagerEndpoint }: Settings): Promise<AzureConnection> {
  const [{ subscriptionId, tenantId }, { token }] = await Promise.all([
    authorization.getClientConfig(),
    authorization.getClientToken(),
  ]);
  return { subscriptionId, tenantId, arm: new ResourceManager(resourceManagerEndpoint, token) };
}
