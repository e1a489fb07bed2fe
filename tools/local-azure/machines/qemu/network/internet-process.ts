import { rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";

import { serveMirror } from "../../../../mirror/serve/serve";
import { azureServices, relay } from "./azure-services";
import { mirrorAddress, operatorAddress } from "./namespaces";

const longestOrder = 100;

/** Where a connection is to lead, in its first line, as `203.0.113.1 6443`. */
function orderOf(text: string): { host: string; port: number; rest: string } | undefined {
  const [, host, port, rest] = /^(\S+) (\d+)\n([^]*)$/.exec(text) ?? [];
  return host === undefined ? undefined : { host, port: Number(port), rest: rest ?? "" };
}

/**
 * An operator's way to public addresses: a client of the socket comes from the internet
 * there.
 */
function forward(from: Socket): void {
  let heard = Buffer.alloc(0);
  const listen = (chunk: Buffer): void => {
    heard = Buffer.concat([heard, chunk]);
    const order = orderOf(heard.toString("latin1"));
    if (order === undefined) {
      if (heard.length > longestOrder) from.destroy();
      return;
    }
    from.off("data", listen).pause();
    const { host, port, rest } = order;
    const to = connect({ host, port, localAddress: operatorAddress }, () => {
      to.write(Buffer.from(rest, "latin1"));
      from.pipe(to).pipe(from);
    });
    to.on("error", () => from.destroy()).on("close", () => from.destroy());
    from.on("error", () => to.destroy()).on("close", () => to.destroy());
  };
  from.on("error", () => undefined).on("data", listen);
}

/**
 * What the internet is to machines without one: the mirror, Azure's services, and operators.
 *
 * @param services sockets that lead to them, in the order that they are listed in
 */
async function serve(socket: string, mirror: string, services: readonly string[]): Promise<void> {
  await serveMirror(mirror, { address: mirrorAddress, port: 80 });
  for (const [index, { address: host, ports }] of Object.values(azureServices).entries()) {
    for (const port of ports) await relay({ host, port }, { path: services[index]! });
  }
  rmSync(socket, { force: true });
  createServer(forward).listen(socket);
}

if (require.main === module) {
  const [socket = "", mirror = "", ...services] = process.argv.slice(2);
  serve(socket, mirror, services).catch((error: Error) => {
    console.error(error.message);
    process.exit(1);
  });
}
