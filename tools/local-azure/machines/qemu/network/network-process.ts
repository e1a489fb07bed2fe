import { readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";

import { run } from "../command";
import { serveNames } from "./dns";
import { type MachineMetadata, serveMetadata, serveWire } from "./metadata";
import { metadataAddress } from "./namespaces";
import type { VirtualNetwork } from "./network-view";
import { Probes } from "./probes";
import { platformAddress, ruleset } from "./ruleset";

/** What this process serves, in a file that is read again at each connection. */
export interface NetworkConfig {
  readonly network: VirtualNetwork;
  /** Names and their addresses. */
  readonly names: Readonly<Record<string, string>>;
  readonly machines: readonly MachineMetadata[];
  readonly patience: number;
}

/**
 * All that is alive in a virtual network besides its machines, as a process in its namespace: name
 * server, metadata, the balancers' probes, and the packet rules, which follow the probes.
 */
async function serve(file: string, socket: string, resourceManager: string): Promise<void> {
  const read = (): NetworkConfig => JSON.parse(readFileSync(file, "utf8")) as NetworkConfig;
  let config = read();
  let last: Promise<unknown> = Promise.resolve();
  const probes = new Probes(() => void apply().catch(logError), config.patience);
  const apply = (): Promise<unknown> => {
    const { network } = config;
    const next = last.then(() => {
      const input = ruleset(network, probes.healthy(network.balanced));
      return run(["nft", "--file", "-"], { input });
    });
    last = next.catch(() => undefined);
    return next;
  };
  const reload = async (): Promise<void> => {
    config = read();
    probes.watch(config.network.balanced);
    await apply();
  };
  await reload();
  await serveNames(platformAddress, (name) => config.names[name]);
  await serveMetadata(
    { address: metadataAddress },
    (address) => config.machines.find((machine) => machine.address === address),
    resourceManager,
  );
  await serveWire(platformAddress);
  rmSync(socket, { force: true });
  createServer((connection) => {
    connection.on("error", () => undefined);
    reload().then(
      () => connection.end("done"),
      ({ message }: Error) => connection.end(message),
    );
  }).listen(socket);
}

const logError = ({ message }: Error): void => console.error(message);

if (require.main === module) {
  const [file = "", socket = "", resourceManager = ""] = process.argv.slice(2);
  serve(file, socket, resourceManager).catch((error: Error) => {
    logError(error);
    process.exit(1);
  });
}
