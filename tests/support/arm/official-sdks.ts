import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { AuthorizationManagementClient } from "@azure/arm-authorization";
import { ComputeManagementClient } from "@azure/arm-compute";
import { ManagedServiceIdentityClient } from "@azure/arm-msi";
import { NetworkManagementClient } from "@azure/arm-network";
import { ResourceManagementClient } from "@azure/arm-resources";
import { StorageManagementClient } from "@azure/arm-storage";
import type { TokenCredential } from "@azure/core-auth";

import { account } from "../../../local-azure/arm/resources/ids";
import { type Certificate, certificateIn } from "../../../local-azure/arm/rest/certificate";
import { serveRest } from "../../../local-azure/arm/rest/rest";
import { newCloud } from "./fixture";

const credential: TokenCredential = {
  getToken: async () => ({ token: "anything", expiresOnTimestamp: Date.now() + 3_600_000 }),
};

const folder = mkdtempSync(join(tmpdir(), "zoned-certificate-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function clientsOf(port: number, { authority }: Certificate) {
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

/** A new cloud, and Microsoft's clients of it. */
export async function withSdks<T>(
  use: (
    clients: Clients,
    built: ReturnType<typeof newCloud> & { readonly port: number },
  ) => Promise<T>,
): Promise<T> {
  const built = newCloud();
  const certificate = await certificateIn(folder);
  const server = await serveRest(built.cloud, 0, {}, certificate);
  try {
    return await use(clientsOf(server.port, certificate), { ...built, port: server.port });
  } finally {
    await server.close();
  }
}

/** Pollers ask at once: the local Azure's operations take no time in tests. */
export const soon = { updateIntervalInMs: 1 };

export async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of list) found.push(one);
  return found;
}
