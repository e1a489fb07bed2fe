import { connect, type Socket } from "node:net";

// What the two say is as wide as their protocols.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Message = Record<string, any>;

export interface Exchange {
  /**
   * Sends a command and returns its answer: the first message after it that `isIt`, whatever comes
   * before.
   */
  ask(command: Message, isIt?: (message: Message) => boolean): Promise<Message["return"]>;
  /** Waits for an event: a message that is no answer. */
  until(isIt: (message: Message) => boolean): Promise<Message>;
}

/** What QEMU and the guest agent both speak: a JSON document per line. */
function exchangeOn(socket: Socket, hasEnded: () => Error | undefined): Exchange {
  let text = "";
  const heard: Message[] = [];
  let wake: () => void = () => undefined;
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) {
      try {
        // An agent that was cut off may send the end of an old answer first.
        heard.push(JSON.parse(line) as Message);
      } catch {
        continue;
      }
    }
    wake();
  });
  socket.on("close", () => wake());
  const until = async (isIt: (message: Message) => boolean): Promise<Message> => {
    for (;;) {
      for (let next = heard.shift(); next; next = heard.shift()) if (isIt(next)) return next;
      const ended = hasEnded();
      if (ended) throw ended;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  };
  return {
    until,
    ask: async (command, isIt = (message) => "return" in message || "error" in message) => {
      socket.write(`${JSON.stringify(command)}\n`);
      const answer = await until(isIt);
      if ("error" in answer) throw new Error(answer["error"].desc);
      return answer["return"];
    },
  };
}

/** Connects, talks, and hangs up; what takes longer than the limit is given up. */
export async function jsonSession<T>(
  path: string,
  limit: number,
  work: (exchange: Exchange) => Promise<T>,
): Promise<T> {
  const socket = connect(path);
  let ended: Error | undefined;
  socket.on("error", (error) => (ended = error));
  socket.on("close", () => (ended ??= new Error(`${path} was closed`)));
  const late = setTimeout(() => {
    ended = new Error(`no answer on ${path} within ${limit / 1000} s`);
    socket.destroy();
  }, limit);
  try {
    return await work(exchangeOn(socket, () => ended));
  } finally {
    clearTimeout(late);
    socket.destroy();
  }
}

/** The same with QEMU itself, which wants to be greeted first. */
export const qmpSession = <T>(
  path: string,
  limit: number,
  work: (exchange: Exchange) => Promise<T>,
): Promise<T> =>
  jsonSession(path, limit, async (exchange) => {
    await exchange.until((message) => "QMP" in message);
    await exchange.ask({ execute: "qmp_capabilities" });
    return await work(exchange);
  });

/** One command to QEMU itself. */
export const qmpCommand = (path: string, execute: string, limit = 10_000): Promise<Message> =>
  qmpSession(path, limit, ({ ask }) => ask({ execute }));
