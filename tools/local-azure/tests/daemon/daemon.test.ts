import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { get } from "node:https";
import { createServer, type Server, type Socket } from "node:net";
import { basename, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { connect } from "node:tls";
import { promisify } from "node:util";

import { freePort, listen } from "../../../../tests/support/listen";
import { testFolder } from "../../../../tests/support/test-folder";
import { pulumi } from "../../../pulumi/pulumi";
import { identityOf } from "../../../shared/pids";
import { Progress } from "../../../shared/progress";
import {
  type Address,
  debugProviders,
  endpointOf,
  lockFile,
  recordFile,
} from "../../daemon/attachment";
import { endDaemon, ensureDaemon } from "../../daemon/daemon-client";
import { type LocalAzure, type LocalAzureOptions, startLocalAzure } from "../../daemon/local-azure";
import { serveApiProxy } from "../../daemon/api-proxy";
import { httpsServer } from "../support/simulated/fixture";
import { checkout } from "../../../shared/checkout";
import { account } from "../../arm/resources/resource";
import { claimsOf } from "../../machines/identity-token";

let state: string;
beforeEach(() => (state = testFolder()));

describe("a local Azure", () => {
  let other: Server;
  let taken: number;
  let azure: LocalAzure | undefined;

  // gRPC also logs a port that is in use to the console.
  beforeAll(() => void jest.spyOn(console, "error").mockImplementation());
  afterAll(() => jest.restoreAllMocks());
  beforeEach(async () => {
    other = createServer();
    taken = await listen(other);
  });
  afterEach(async () => {
    await azure?.stop();
    azure = undefined;
  });

  const start = async (options: Partial<LocalAzureOptions> = {}) =>
    (azure = await startLocalAzure({ state, binaries: "", log: () => undefined, ...options }));

  it("gives the engine and the program its ports", async () => {
    const { ports } = await start();

    expect(new Set(Object.values(ports)).size).toBe(7);
    expect(debugProviders(ports)).toBe(
      `azure-native:${ports.azureNative},tls:${ports.tls},kubernetes:${ports.kubernetes}`,
    );
    const response = await fetch(`${endpointOf(ports)}/local/health`);
    expect(await response.json()).toMatchObject({ empty: true, apis: {} });
  });

  it("uses its previous ports while they are free", async () => {
    const { ports } = await start();
    await azure?.stop();

    expect((await start({ ports })).ports).toEqual(ports);
  });

  it.each(["resourceManager", "azureNative"] as const)(
    "uses another port for %s when the preferred one is in use",
    async (name) => {
      const { ports } = await start({ ports: { [name]: taken } });

      expect(ports[name]).not.toBe(taken);
    },
  );

  it.each(["resourceManager", "azureNative"] as const)(
    "with exactPorts, reports the port of %s that is in use, and leaves no server open",
    async (name) => {
      const { ports: free } = await start();
      await azure?.stop();
      azure = undefined;
      const ports = { ...free, [name]: taken };

      await expect(start({ ports, exactPorts: true })).rejects.toThrow(
        new RegExp(`^port ${taken}, which ${name} needs, is in use: .*--port`),
      );
      await expect(fetch(endpointOf(free))).rejects.toThrow();
    },
  );
});

describe("a daemon", () => {
  afterEach(() => endDaemon(state));

  const ensure = () =>
    ensureDaemon(
      { state, binaries: "" },
      new Progress({ write: () => undefined }),
      AbortSignal.timeout(60_000),
    );

  test("a killed daemon whose process still exists is replaced by one that answers", async () => {
    const ending = identityOf(spawn("sleep", ["1"], { stdio: "ignore" }).pid!);
    const port = await freePort();
    const ports = {
      ...{ resourceManager: port, azureNative: port, tls: port, kubernetes: port, proxy: port },
    };
    writeFileSync(recordFile(state), JSON.stringify({ ...ending, since: "", binaries: "", ports }));
    writeFileSync(lockFile(state), JSON.stringify(ending));

    const azure = await ensure();

    expect(await azure.apiAddress("none")).toBeUndefined();
  });

  test("a daemon that answers is not replaced", async () => {
    const { ports } = await ensure();

    expect((await ensure()).ports).toEqual(ports);
  });
});

it("writes no file beside a checkpoint that a killed engine could leave half written", async () => {
  writeFileSync(join(state, "Pulumi.yaml"), "name: some\nruntime: nodejs\n");
  const binaries = process.env["ZONED_BINARIES"] ?? "";
  const options = { binaries, state, program: state, passphrase: "some" };

  const { code, stderr } = await pulumi(["stack", "init", "--stack", "dev"], options);

  expect({ code, stderr }).toMatchObject({ code: 0 });
  const files = readdirSync(join(state, "backend"), { recursive: true, encoding: "utf8" });
  expect(files.map((file) => basename(file))).toContain("dev.json");
  expect(files.filter((file) => file.endsWith(".attrs"))).toEqual([]);
});

describe("the proxy to the clusters' APIs", () => {
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
});

describe("the az of a rehearsal", () => {
  /** As azure-native runs it: from another folder. */
  async function az(...args: string[]): Promise<Record<string, unknown>> {
    const program = join(checkout, "tools/local-azure/login/az");
    const env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` };
    const { stdout } = await promisify(execFile)(program, args, { cwd: "/", env });
    return JSON.parse(stdout);
  }

  const { subscriptionId: id, tenantId, objectId: oid, clientId: appid } = account;

  it("shows the subscription and its user", async () => {
    const user = { name: appid, type: "servicePrincipal" };

    expect(await az("account", "show", "-o", "json", "--subscription", id)).toMatchObject({
      ...{ id, tenantId, user, isDefault: true, environmentName: "AzureCloud" },
    });
  });

  it("gives a token for what it is asked for, which ends in the future", async () => {
    const aud = "https://storage.azure.com";
    const token = await az("account", "get-access-token", "-o", "json", "--resource", aud);

    expect(claimsOf(token["accessToken"] as string)).toMatchObject({
      aud,
      oid,
      appid,
      tid: tenantId,
    });
    expect(token["expires_on"]).toBeGreaterThan(Date.now() / 1000);
  });

  it("refuses any other command", async () => {
    await expect(az("group", "list")).rejects.toThrow(/the local Azure's az has no command group/);
  });
});
