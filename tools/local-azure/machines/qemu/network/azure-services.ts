import { rmSync } from "node:fs";
import { connect, createServer, type NetConnectOpts, type Server } from "node:net";

import { loginHost, parseId, type View } from "../../../arm/resources/resource";
import { registryType } from "../../../arm/types/containerregistry/registry";
import { blobDomain, storageAccountType } from "../../../arm/types/storage";

/** Azure's services as machines reach them, on the simulated internet. */
export const azureServices = {
  blob: { address: "198.18.2.1", ports: [80, 443] },
  resourceManager: { address: "198.18.3.1", ports: [443] },
  login: { address: "198.18.5.1", ports: [443] },
  registry: { address: "198.18.6.1", ports: [443] },
} as const;

export type AzureService = keyof typeof azureServices;

export const serviceNames = Object.keys(azureServices) as AzureService[];

/** The names of storage accounts, of registries and of Entra, each of which leads to its service. */
export function azureNamesOf(view: View): Record<string, string> {
  const { blob, login, registry } = azureServices;
  const accounts = view.ofType(storageAccountType).map(({ id }) => parseId(id)!.name);
  const registries = view.ofType(registryType).map(({ body }) => String(body["loginServer"]));
  return Object.fromEntries([
    [loginHost, login.address],
    ...accounts.map((name) => [`${name}.${blobDomain}`, blob.address]),
    ...registries.map((name) => [name, registry.address]),
  ]);
}

/**
 * Leads from a socket of one network namespace into another: files are the same in both.
 *
 * @param at a path, or an address with a port
 */
export async function relay(
  at: { readonly path: string } | { readonly host: string; readonly port: number },
  to: NetConnectOpts,
): Promise<Server> {
  if ("path" in at) rmSync(at.path, { force: true });
  const server = createServer((from) => {
    const target = connect(to);
    from.pipe(target).pipe(from);
    target.on("error", () => from.destroy()).on("close", () => from.destroy());
    from.on("error", () => target.destroy()).on("close", () => target.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(at, resolve);
  });
  return server;
}
