import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { certificateIn } from "../../../arm/rest/certificate";
import { serveRest } from "../../../arm/rest/rest";
import { newArm } from "./fixture";
import { type Clients, clientsOf } from "./sdk-clients";

export { type Clients, soon } from "./sdk-clients";

const folder = mkdtempSync(join(tmpdir(), "zoned-certificate-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A new Resource Manager, and Microsoft's clients of it. */
export async function withSdks<T>(
  use: (
    clients: Clients,
    built: ReturnType<typeof newArm> & { readonly port: number },
  ) => Promise<T>,
): Promise<T> {
  const built = newArm();
  const certificate = await certificateIn(folder);
  const server = await serveRest(built.arm, 0, {}, certificate);
  try {
    return await use(clientsOf(server.port, certificate.authority), {
      ...built,
      port: server.port,
    });
  } finally {
    await server.close();
  }
}

export async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of list) found.push(one);
  return found;
}
