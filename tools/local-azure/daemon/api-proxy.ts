import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";

import { apiPort } from "../../../components/api-server";
import { loginHost } from "../arm/resources/resource";
import type { Served } from "../arm/rest/listener";
import type { Address } from "./attachment";

/** The target of a CONNECT request: `name:port`. */
function targetOf(text = ""): { readonly name: string; readonly port: number } {
  const [, name = "", port = ""] = /^(.*):(\d+)$/.exec(text) ?? [];
  return { name: name.toLowerCase().replace(/\.$/, ""), port: Number(port) };
}

const refusal = (target: string): string =>
  `The local Azure only connects to the APIs of its own clusters, port ${apiPort}, and to its own ${loginHost}; ` +
  `there is none at ${target}.\n`;

/**
 * An HTTP CONNECT proxy to the clusters' APIs, whose names exist only on Azure, and to this Azure's stand-in for
 * Entra. It does not connect to anything else.
 */
export async function serveApiProxy(
  resolve: (apiName: string) => Address | undefined,
  loginPort: number,
  port: number,
): Promise<Served> {
  const addressOf = (target: { readonly name: string; readonly port: number }) => {
    if (target.name === loginHost && target.port === 443) {
      return { host: "127.0.0.1", port: loginPort };
    }
    return target.port === apiPort ? resolve(target.name) : undefined;
  };
  const tunnels = new Set<Duplex>();
  const server = createServer((request, response) => {
    response.writeHead(502, { "content-type": "text/plain" }).end(refusal(request.url ?? "/"));
  });
  server.on("connect", ({ url = "" }, from: Duplex, head: Buffer) => {
    from.on("error", () => from.destroy());
    const target = targetOf(url);
    const address = addressOf(target);
    const refuse = (text: string): void =>
      void from.end(
        "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\n" +
          `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
      );
    if (address === undefined) return refuse(refusal(url));
    let isOpen = false;
    const to = connect(address, () => {
      isOpen = true;
      from.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      to.write(head);
      from.pipe(to).pipe(from);
    });
    for (const end of [from, to]) {
      tunnels.add(end);
      end.once("close", () => tunnels.delete(end));
    }
    from.once("close", () => to.destroy());
    to.once("close", () => isOpen && from.destroy());
    to.on("error", ({ message }) => {
      if (!isOpen) refuse(`The API of ${target.name} does not answer: ${message}.\n`);
    });
  });
  await new Promise<void>((listening, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", listening);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
        for (const tunnel of tunnels) tunnel.destroy();
      }),
  };
}
