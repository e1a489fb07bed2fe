import { createSocket, type Socket } from "node:dgram";

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
export function serveNames(
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
