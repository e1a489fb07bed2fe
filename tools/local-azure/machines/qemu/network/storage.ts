import { rmSync } from "node:fs";
import { connect, createServer, type NetConnectOpts, type Server } from "node:net";

import { parseId } from "../../../arm/resources/ids";
import type { View } from "../../../arm/resources/resource";
import { blobDomain, storageAccountType } from "../../../arm/types/storage/storage-account";
import { storageAddress } from "./namespaces";

/** The names of storage accounts, which all lead to the Blob service. */
export const blobNamesOf = (view: View): Record<string, string> =>
  Object.fromEntries(
    view
      .ofType(storageAccountType)
      .map(({ id }) => [`${parseId(id)!.name}.${blobDomain}`, storageAddress]),
  );

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
