import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { get } from "node:https";
import { createServer, type Server } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { connect } from "node:tls";

import { serveApiProxy } from "./api-proxy";
import type { Address } from "./attachment";
import { httpsServer } from "./machines/fixture";

const loopback = "127.0.0.1";
let api: Awaited<ReturnType<typeof httpsServer>>;
let proxy: Awaited<ReturnType<typeof serveApiProxy>>;
const apis = new Map<string, Address>();

beforeAll(async () => {
  api = await httpsServer();
  proxy = await serveApiProxy((name) => apis.get(name), 0);
});
beforeEach(() => void apis.set(api.serverName, { host: loopback, port: api.port }));
afterAll(async () => {
  await proxy.close();
  api.close();
});

type Connected = [IncomingMessage, Socket, Buffer];

/** What the proxy answers to CONNECT, and where that is a tunnel, its end here. */
async function tunnel(path: string): Promise<{ status?: number; said: string; socket: Socket }> {
  const asking = request({ host: loopback, port: proxy.port, method: "CONNECT", path }).end();
  const [answer, socket, head] = (await once(asking, "connect")) as Connected;
  const status = answer.statusCode;
  return { status, said: status === 200 ? "" : `${head}${await text(socket)}`, socket };
}

async function ask(socket: Socket, servername: string): Promise<string> {
  const secure = connect({ socket, servername, ca: api.ca });
  await once(secure, "secureConnect");
  const asking = get({ createConnection: () => secure, host: servername });
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  return await text(answer);
}

it("leads to an API by its name, whose certificate is checked end to end", async () => {
  const { status, socket } = await tunnel(`${api.serverName}:6443`);

  expect(status).toBe(200);
  expect(await ask(socket, api.serverName)).toBe("{}");
});

it("takes a name as DNS does, in any case and with a dot at its end", async () => {
  expect(await tunnel("API.example.:6443")).toMatchObject({ status: 200 });
});

it.each([
  ["another name", "example.org:6443"],
  ["another port of an API's name", "api.example:443"],
  ["an address of this host", "127.0.0.1:6443"],
  ["what is no name", "api.example"],
])("refuses %s", async (_, target) => {
  const { status, said } = await tunnel(target);

  expect(status).toBe(502);
  expect(said).toContain(`leads to the APIs of its own clusters, port 6443, and to nothing else`);
});

it("refuses to fetch anything itself", async () => {
  const response = await fetch(`http://${loopback}:${proxy.port}/`);

  expect(response.status).toBe(502);
});

it("says of an API that is down that it does not answer", async () => {
  const closed = createServer().listen(0, loopback);
  await once(closed, "listening");
  const { port } = closed.address() as AddressInfo;
  await new Promise((done) => closed.close(done));
  apis.set(api.serverName, { host: loopback, port });

  const { status, said } = await tunnel(`${api.serverName}:6443`);

  expect({ status, said }).toEqual({
    status: 502,
    said: expect.stringMatching(/^The API of api\.example does not answer: .*ECONNREFUSED/),
  });
});

it("closes with its tunnels, and with whom they lead to", async () => {
  let inside: Socket | undefined;
  const silent: Server = createServer((socket) => (inside = socket)).listen(0, loopback);
  await once(silent, "listening");
  apis.set(api.serverName, { host: loopback, port: (silent.address() as AddressInfo).port });
  const other = await serveApiProxy((name) => apis.get(name), 0);
  const asking = request({
    ...{ host: loopback, port: other.port, method: "CONNECT", path: `${api.serverName}:6443` },
  }).end();
  const [, socket] = (await once(asking, "connect")) as Connected;
  const ended = once(socket.resume(), "close");

  await other.close();

  await ended;
  if (!inside?.destroyed) await once(inside!.resume(), "close");
  silent.close();
});
