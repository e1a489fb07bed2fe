import { createSocket, type Socket } from "node:dgram";
import { readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";

import { run } from "../../../../shared/run";
import { type MachineMetadata, serveMetadata, serveWire } from "./metadata";
import { metadataAddress } from "./namespaces";
import type { VirtualNetwork } from "./network-view";
import { Probes } from "./probes";
import { platformAddress, ruleset } from "./ruleset";

const headerBytes = 12;
const port = 53;
const timeToLive = 10;

/** Where the question's name ends, and the name itself in lower case. */
function nameOf(query: Buffer): { name: string; end: number } | undefined {
  const labels: string[] = [];
  for (let at = headerBytes; at < query.length;) {
    const length = query[at]!;
    if (length === 0) return { name: labels.join(".").toLowerCase(), end: at + 1 };
    if (length > 63 || at + 1 + length > query.length) return undefined;
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return undefined;
}

/**
 * The answer to a query of one question: an address for a name that is known, none of another kind,
 * and NXDOMAIN for every other name. Undefined for what is no query.
 */
export function answer(
  query: Buffer,
  addressOf: (name: string) => string | undefined,
): Buffer | undefined {
  const isQuery = query.length > headerBytes && (query[2]! & 0x80) === 0;
  const question = isQuery && query.readUInt16BE(4) === 1 ? nameOf(query) : undefined;
  if (question === undefined || question.end + 4 > query.length) return undefined;
  const isAddress = query.readUInt16BE(question.end) === 1;
  const address = addressOf(question.name);
  const hasAnswer = address !== undefined && isAddress;
  const header = Buffer.alloc(headerBytes);
  query.copy(header, 0, 0, 2);
  // A response, recursion available; it repeats whether recursion was asked for.
  header[2] = 0x80 | (query[2]! & 0x79);
  header[3] = 0x80 | (address === undefined ? 3 : 0);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(hasAnswer ? 1 : 0, 6);
  const asked = query.subarray(headerBytes, question.end + 4);
  if (!hasAnswer) return Buffer.concat([header, asked]);
  const record = Buffer.alloc(16);
  // The name is the one that the question has.
  record.writeUInt16BE(0xc000 | headerBytes, 0);
  record.writeUInt16BE(1, 2);
  record.writeUInt16BE(1, 4);
  record.writeUInt32BE(timeToLive, 6);
  record.writeUInt16BE(4, 10);
  address.split(".").forEach((part, at) => record.writeUInt8(Number(part), 12 + at));
  return Buffer.concat([header, asked, record]);
}

/** Azure's own name server, for the names that the resource manager knows. */
function serveNames(
  address: string,
  addressOf: (name: string) => string | undefined,
): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.on("message", (query, { address: asker, port: from }) => {
    const reply = answer(query, addressOf);
    if (reply) socket.send(reply, from, asker);
  });
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.bind(port, address, () => resolve(socket));
  });
}

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
