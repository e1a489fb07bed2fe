import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { get } from "node:https";
import { createServer } from "node:net";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { connect } from "node:tls";

import { serveApiProxy } from "../../daemon/api-proxy";
import type { Address } from "../../daemon/attachment";
import { httpsServer } from "../support/simulated/fixture";
import { freePort, listen } from "../../../../tests/support/listen";

const loopback = "127.0.0.1";
/** Where this Azure's Entra listens. */
const login = 1;
let api: Awaited<ReturnType<typeof httpsServer>>;
let proxy: Awaited<ReturnType<typeof serveApiProxy>>;
const apis = new Map<string, Address>();

beforeAll(async () => {
  api = await httpsServer();
  proxy = await serveApiProxy((name) => apis.get(name), login, 0);
});
beforeEach(() => void apis.set(api.serverName, { host: loopback, port: api.port }));
afterAll(() => proxy.close());

type Connected = [IncomingMessage, Socket, Buffer];

/** The proxy's answer to CONNECT, and this end of the tunnel. */
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

it("connects to an API by its name, with TLS end to end", async () => {
  const { status, socket } = await tunnel(`${api.serverName}:6443`);

  expect(status).toBe(200);
  expect(await ask(socket, api.serverName)).toBe("{}");
  expect(await tunnel(`${api.serverName.toUpperCase()}.:6443`)).toMatchObject({ status: 200 });
});

it.each([
  ["another name", "example.org:6443"],
  ["another port of Entra's name", "login.microsoftonline.com:80"],
  ["another port of an API's name", "api.example:443"],
  ["an address of this host", "127.0.0.1:6443"],
  ["what is no name", "api.example"],
])("refuses %s", async (_, target) => {
  const { status, said } = await tunnel(target);

  expect(status).toBe(502);
  expect(said).toContain(`only connects to the APIs of its own clusters, port 6443`);
});

it("does not forward plain HTTP requests", async () => {
  const response = await fetch(`http://${loopback}:${proxy.port}/`);

  expect(response.status).toBe(502);
});

it("reports an API that does not answer", async () => {
  apis.set(api.serverName, { host: loopback, port: await freePort() });

  const { status, said } = await tunnel(`${api.serverName}:6443`);

  expect({ status, said }).toEqual({
    status: 502,
    said: expect.stringMatching(/^The API of api\.example does not answer: .*ECONNREFUSED/),
  });
});

it("closes its tunnels when it closes", async () => {
  let inside: Socket | undefined;
  const silent = createServer((socket) => (inside = socket));
  apis.set(api.serverName, { host: loopback, port: await listen(silent) });
  const other = await serveApiProxy((name) => apis.get(name), login, 0);
  const asking = request({
    ...{ host: loopback, port: other.port, method: "CONNECT", path: `${api.serverName}:6443` },
  }).end();
  const [, socket] = (await once(asking, "connect")) as Connected;
  const ended = once(socket.resume(), "close");

  await other.close();

  await ended;
  if (!inside?.destroyed) await once(inside!.resume(), "close");
});
