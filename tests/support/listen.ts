import {
  createServer as createHttpServer,
  type RequestListener,
  type Server as HttpServer,
} from "node:http";
import { type AddressInfo, connect, createServer, type Server } from "node:net";

const servers: Server[] = [];

afterAll(() => {
  for (const server of servers) {
    server.close();
    (server as Partial<HttpServer>).closeAllConnections?.();
  }
});

/**
 * Has a server listen on this machine until the test file has ended; returns its port, which was
 * free.
 */
export async function listen(server: Server): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** Answers by HTTP on this machine until the test file has ended; returns where. */
export const serve = async (answer: RequestListener): Promise<string> =>
  `http://127.0.0.1:${await listen(createHttpServer(answer))}`;

/**
 * An HTTP proxy that leads to one port of this machine, whoever is asked for, until the test file has
 * ended; where it is, and whom it was asked for.
 *
 * @param answer to what is asked without TLS
 */
export async function serveProxyTo(port: number, answer?: RequestListener) {
  const asked: string[] = [];
  const proxy = createHttpServer(answer).on("connect", ({ url = "" }, socket) => {
    asked.push(url);
    const onward = connect(port, "127.0.0.1", () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
    onward.on("error", () => socket.destroy()).pipe(socket);
    socket.on("error", () => onward.destroy()).pipe(onward);
  });
  return { address: `http://127.0.0.1:${await listen(proxy)}`, asked };
}

/** An HTTP proxy that leads nowhere; where it is, and whom it was asked for. */
export async function serveRefusingProxy() {
  const asked: string[] = [];
  const proxy = createHttpServer().on("connect", ({ url = "" }, socket) => {
    asked.push(url);
    socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
  });
  return { address: `http://127.0.0.1:${await listen(proxy)}`, asked };
}

/** A port on which nothing listens. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}
