import { AuthorizationManagementClient } from "@azure/arm-authorization";
import { ComputeManagementClient } from "@azure/arm-compute";
import { ManagedServiceIdentityClient } from "@azure/arm-msi";
import { NetworkManagementClient } from "@azure/arm-network";
import { ResourceManagementClient } from "@azure/arm-resources";
import { StorageManagementClient } from "@azure/arm-storage";
import type { TokenCredential } from "@azure/core-auth";
import { WorkloadIdentityCredential } from "@azure/identity";
import { ContainerClient } from "@azure/storage-blob";

import { account, subscriptionPath } from "../../../arm/resources/resource";
import type { Ports } from "../../../daemon/attachment";
import { all } from "./fixture";

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

export { ContainerClient };

interface Pod {
  /** Of the identity that it logs in as. */
  readonly clientId: string;
  readonly tokenFilePath: string;
  readonly ports: Pick<Ports, "blob" | "login">;
  /** What the local Azure's certificate is signed with, as PEM. */
  readonly authority: string;
}

/** Microsoft's client of a blob container at an address on Azure, for a pod with a token of its service account. */
export function containerFor(
  url: string,
  { clientId, tokenFilePath, ports, authority: ca }: Pod,
): ContainerClient {
  const credential = new WorkloadIdentityCredential({
    ...{ clientId, tenantId: account.tenantId, tokenFilePath },
    authorityHost: `https://127.0.0.1:${ports.login}`,
    // Microsoft's list of such hosts has not this one.
    disableInstanceDiscovery: true,
    tlsOptions: { ca },
    retryOptions: { maxRetries: 0 },
  });
  const { hostname, pathname } = new URL(url);
  const here = `https://127.0.0.1:${ports.blob}/${hostname.split(".")[0]}${pathname}`;
  return new ContainerClient(here, credential, {
    ...{ tlsOptions: { ca }, retryOptions: { maxTries: 1 } },
  });
}

/** Ids of all that Azure has. */
export async function everyId({ resources, authorization }: Clients): Promise<string[]> {
  const lists: AsyncIterable<{ id?: string }>[] = [
    resources.resourceGroups.list(),
    resources.resources.list(),
    authorization.roleAssignments.listForSubscription(),
    authorization.roleDefinitions.list(subscriptionPath),
  ];
  const found = await Promise.all(lists.map(all));
  return found.flatMap((ones) => ones.map(({ id }) => id!)).sort();
}

/** Pollers ask at once: the local Azure's operations take no time in tests. */
export const soon = { updateIntervalInMs: 1 };
