import { spawn } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { basename, join } from "node:path";

import { freePort, listen } from "../../../../tests/support/listen";
import { testFolder } from "../../../../tests/support/test-folder";
import { pulumi } from "../../../pulumi/pulumi";
import { identityOf } from "../../../shared/pids";
import { Progress } from "../../../shared/progress";
import { debugProviders, endpointOf } from "../../daemon/attachment";
import { endDaemon, ensureDaemon } from "../../daemon/daemon-client";
import { lockFile, recordFile } from "../../daemon/daemon-record";
import { type LocalAzure, type LocalAzureOptions, startLocalAzure } from "../../daemon/local-azure";

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
