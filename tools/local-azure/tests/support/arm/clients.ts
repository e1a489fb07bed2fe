import { setTimeout as sleep } from "node:timers/promises";

import { AuthorizationManagementClient } from "@azure/arm-authorization";
import { ComputeManagementClient } from "@azure/arm-compute";
import { ManagedServiceIdentityClient } from "@azure/arm-msi";
import { NetworkManagementClient } from "@azure/arm-network";
import { ResourceManagementClient } from "@azure/arm-resources";
import { StorageManagementClient } from "@azure/arm-storage";
import type { TokenCredential } from "@azure/core-auth";
import { WorkloadIdentityCredential } from "@azure/identity";
import { ContainerClient } from "@azure/storage-blob";

import { account, parseId, subscriptionPath } from "../../../arm/resources/ids";
import { typeOf, typeOfToken } from "../../../arm/types/types";
import type { Ports } from "../../../daemon/attachment";
import { Properties } from "../../../plugins/protocol/values";
import { parametersOf } from "../../../provider/check";
import { valid } from "./valid-resources";

const versions: readonly (readonly [RegExp, string])[] = [
  [/\/Microsoft\.Authorization\/locks(\/|$)/i, "2020-05-01"],
  [/\/Microsoft\.Authorization\/policyExemptions/i, "2022-07-01-preview"],
  [/\/Microsoft\.Authorization\/policy/i, "2025-01-01"],
  [/\/Microsoft\.PolicyInsights\//i, "2024-10-01"],
  [/\/Microsoft\.Authorization\//i, "2022-04-01"],
  [/\/Microsoft\.Network\/privateDnsZones(\/|$)/i, "2024-06-01"],
  [/\/Microsoft\.Network\//i, "2024-05-01"],
  [/\/Microsoft\.Features\//i, "2021-07-01"],
  [/\/Microsoft\.Compute\/(disks|diskEncryptionSets|snapshots)(\/|$)/i, "2024-03-02"],
  [/\/Microsoft\.Compute\//i, "2024-11-01"],
  [/\/Microsoft\.ContainerRegistry\//i, "2025-11-01"],
  [/\/Microsoft\.ManagedIdentity\//i, "2023-01-31"],
  [/\/Microsoft\.Storage\//i, "2024-01-01"],
  [/^\/subscriptions\//i, "2024-03-01"],
];

interface Request {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** Asks the local Azure by REST, and waits until an operation that this starts is done. */
export async function sendToAzure(
  endpoint: string,
  { method, path, body, signal }: Request,
): Promise<unknown> {
  const version = versions.find(([pattern]) => pattern.test(path))?.[1];
  const url = `${endpoint}${path}${version === undefined ? "" : `?api-version=${version}`}`;
  const ask = (address: string, how: RequestInit) =>
    fetch(address, {
      ...how,
      headers: { authorization: "Bearer test", "content-type": "application/json" },
      signal,
    });
  const response = await ask(url, {
    method,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  for (const operation = response.headers.get("azure-asyncoperation"); operation !== null;) {
    const done = (await (await ask(operation, {})).json()) as { status: string; error?: object };
    if (done.status === "Succeeded") break;
    if (done.status === "Failed")
      throw new Error(`${method} ${path}: ${JSON.stringify(done.error)}`);
    await sleep(50, undefined, { signal });
  }
  return text === "" ? undefined : JSON.parse(text);
}

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

export async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of list) found.push(one);
  return found;
}

/** A type by its token, without azure-native before it. */
export const type = (name: string) => typeOfToken(`azure-native:${name}`)!;
/** What the engine names a request by. */
export const subject = {
  urn: "urn",
  type: "t",
  signal: new AbortController().signal,
  timeoutSeconds: 0,
};

/** The inputs of a program for a valid body. */
export const inputsOf = (kind: keyof typeof valid): Properties => {
  const [id, body] = valid[kind];
  return {
    ...(JSON.parse(JSON.stringify(body)) as Properties),
    ...parametersOf(typeOf(parseId(id)!.type)!, id),
  };
};
