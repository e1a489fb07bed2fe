import { createSocket } from "node:dgram";
import { connect, createServer, isIPv6 } from "node:net";
import { createInterface } from "node:readline";

/** What one program of the lab listens on. */
export interface Listening {
  /** Ports on every address that it has. */
  readonly tcp: readonly number[];
  readonly udp: readonly { readonly address: string; readonly port: number }[];
}

export interface Probe {
  readonly address: string;
  readonly port: number;
  readonly protocol: "tcp" | "udp";
  readonly source: string | null;
  readonly count: number;
  readonly concurrency: number;
  /** After which a connection counts as silent. */
  readonly timeoutMs: number;
}

/** How connections ended: for each address that answered, the client addresses that it saw. */
export interface ProbeResult {
  readonly answers: Record<string, Record<string, number>>;
  /** Nothing listens there, or a rule rejects. */
  readonly refused: number;
  readonly silent: number;
}

const plain = (address = ""): string => address.replace(/^::ffff:/, "");

const named = (address: string, port = 0): string =>
  isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;

/** The address that answers, and the client address that it saw. */
type Answer = readonly [end: string, peer: string];

function listen({ tcp, udp }: Listening): void {
  for (const port of tcp) {
    createServer((socket) => {
      socket.on("error", () => socket.destroy());
      const end = named(plain(socket.localAddress), socket.localPort);
      socket.end(JSON.stringify([end, plain(socket.remoteAddress)] satisfies Answer));
    }).listen(port, "::");
  }
  for (const { address, port } of udp) {
    const socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
    socket.on("message", (_, peer) =>
      socket.send(
        JSON.stringify([named(address, port), peer.address] satisfies Answer),
        peer.port,
        peer.address,
      ),
    );
    socket.bind(port, address);
  }
}

type Outcome = Answer | "refused" | "silent";

const parsed = (text: string | Buffer): Answer => JSON.parse(`${text}`) as Answer;

/** Below NodePorts and the ports that the kernel gives out, above those that are listened on. */
const sourcePorts = { first: 11_000, count: 19_000 };

let sent = 0;

/**
 * Another one for each connection. Two that reach one endpoint from one port, by two Services,
 * meet in TIME_WAIT there: the second is reset, and its repeated SYN chooses an endpoint anew.
 */
const nextSourcePort = (): number => sourcePorts.first + (sent++ % sourcePorts.count);

function byTcp({ address, port, source, timeoutMs }: Probe): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = connect({
      host: address,
      port,
      localPort: nextSourcePort(),
      ...(source && { localAddress: source }),
    });
    let text = "";
    socket.setTimeout(timeoutMs, () => {
      socket.destroy();
      resolve("silent");
    });
    socket.on("data", (chunk) => (text += chunk));
    socket.on("end", () => resolve(parsed(text)));
    socket.on("error", ({ message }) => resolve(refusal(message)));
  });
}

function byUdp({ address, port, source, timeoutMs }: Probe): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
    const end = (outcome: Outcome): void => {
      clearTimeout(timer);
      clearInterval(again);
      socket.close();
      resolve(outcome);
    };
    const timer = setTimeout(() => end("silent"), timeoutMs);
    let again: NodeJS.Timeout | undefined;
    socket.once("message", (text) => end(parsed(text)));
    socket.once("error", ({ message }) => end(refusal(message)));
    const send = (): void => socket.send("ping");
    const ask = (): void =>
      socket.connect(port, address, () => {
        send();
        // As TCP does by itself: kernels answer with fewer refusals than there are packets.
        again = setInterval(send, 300);
      });
    socket.bind(nextSourcePort(), source ?? undefined, ask);
  });
}

function refusal(message: string): "refused" {
  if (/ECONNREFUSED|ECONNRESET/.test(message)) return "refused";
  throw new Error(message);
}

async function probe(options: Probe): Promise<ProbeResult> {
  const result = { answers: {} as ProbeResult["answers"], refused: 0, silent: 0 };
  const one = options.protocol === "tcp" ? byTcp : byUdp;
  let left = options.count;
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const outcome = await one(options);
      if (typeof outcome === "string") {
        result[outcome] += 1;
      } else {
        const [end, peer] = outcome;
        const peers = (result.answers[end] ??= {});
        peers[peer] = (peers[peer] ?? 0) + 1;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(options.concurrency, left) }, worker));
  return result;
}

listen(JSON.parse(process.argv[2] ?? "") as Listening);

createInterface({ input: process.stdin }).on("line", (line) => {
  void probe(JSON.parse(line) as Probe).then((result) =>
    process.stdout.write(`${JSON.stringify(result)}\n`),
  );
});
