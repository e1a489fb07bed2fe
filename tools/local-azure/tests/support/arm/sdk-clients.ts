import { AuthorizationManagementClient } from "@azure/arm-authorization";
import { ComputeManagementClient } from "@azure/arm-compute";
import { ManagedServiceIdentityClient } from "@azure/arm-msi";
import { NetworkManagementClient } from "@azure/arm-network";
import { ResourceManagementClient } from "@azure/arm-resources";
import { StorageManagementClient } from "@azure/arm-storage";
import type { TokenCredential } from "@azure/core-auth";

import { account, subscriptionPath } from "../../../arm/resources/ids";

const credential: TokenCredential = {
  getToken: async () => ({ token: "anything", expiresOnTimestamp: Date.now() + 3_600_000 }),
};

/**
 * Microsoft's clients of a local Azure on this port.
 *
 * @param authority what its certificate is signed with, as PEM
 */
export function clientsOf(port: number, authority: string) {
  const options = {
    endpoint: `https://127.0.0.1:${port}`,
    tlsOptions: { ca: authority },
    retryOptions: { maxRetries: 0 },
  };
  const { subscriptionId } = account;
  return {
    resources: new ResourceManagementClient(credential, subscriptionId, options),
    network: new NetworkManagementClient(credential, subscriptionId, options),
    compute: new ComputeManagementClient(credential, subscriptionId, options),
    identities: new ManagedServiceIdentityClient(credential, subscriptionId, options),
    storage: new StorageManagementClient(credential, subscriptionId, options),
    authorization: new AuthorizationManagementClient(credential, subscriptionId, options),
  };
}

export type Clients = ReturnType<typeof clientsOf>;

/** Ids of all that Azure has. */
export async function everyId({ resources, authorization }: Clients): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of resources.resourceGroups.list()) ids.push(id!);
  for await (const { id } of resources.resources.list()) ids.push(id!);
  for await (const { id } of authorization.roleAssignments.listForSubscription()) ids.push(id!);
  for await (const { id } of authorization.roleDefinitions.list(subscriptionPath)) ids.push(id!);
  return ids.sort();
}

/** Pollers ask at once: the local Azure's operations take no time in tests. */
export const soon = { updateIntervalInMs: 1 };
