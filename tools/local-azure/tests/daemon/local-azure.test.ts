import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { debugProviders, endpointOf } from "../../daemon/attachment";
import { type LocalAzure, type LocalAzureOptions, startLocalAzure } from "../../daemon/local-azure";
import { listen } from "../../../../tests/support/listen";

let state: string;
let other: Server;
let taken: number;
let azure: LocalAzure | undefined;

// gRPC also logs a port that is in use to the console.
beforeAll(() => void jest.spyOn(console, "error").mockImplementation());
afterAll(() => jest.restoreAllMocks());
beforeEach(async () => {
  state = mkdtempSync(join(tmpdir(), "zoned-azure-"));
  other = createServer();
  taken = await listen(other);
});
afterEach(async () => {
  await azure?.stop();
  azure = undefined;
  other.close();
  rmSync(state, { recursive: true });
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
