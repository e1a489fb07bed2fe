import { setTimeout as wait } from "node:timers/promises";

import { type Exchange, jsonSession } from "./json-lines";

interface Ended {
  readonly exitCode: number;
  readonly stdout: string;
}

const answerWithin = 60_000;
const chunkBytes = 32 * 1024;

const decoded = (text: string | undefined): string =>
  Buffer.from(text ?? "", "base64").toString("utf8");

/** The guest agent of one machine; one question at a time. */
export class Agent {
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly socket: string) {}

  /** Whether it answers now. */
  answers = (within = 5_000): Promise<boolean> =>
    this.session(within, async () => true).catch(() => false);

  async write(path: string, text: string): Promise<void> {
    await this.session(answerWithin, async ({ ask }) => {
      const handle = await ask({ execute: "guest-file-open", arguments: { path, mode: "w" } });
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += chunkBytes) {
        const chunk = bytes.subarray(at, at + chunkBytes).toString("base64");
        await ask({ execute: "guest-file-write", arguments: { handle, "buf-b64": chunk } });
      }
      await ask({ execute: "guest-file-close", arguments: { handle } });
    });
  }

  /**
   * Starts a program as root; its arguments are visible in the machine. Returns its process's
   * number.
   */
  start = (path: string, ...arg: string[]): Promise<number> =>
    this.session(answerWithin, async ({ ask }) => {
      const command = { path, arg, "capture-output": true };
      const { pid } = await ask({ execute: "guest-exec", arguments: command });
      return pid as number;
    });

  /** How it ended, once it has; asked once, since the agent forgets what it has reported. */
  ended = (pid: number): Promise<Ended | undefined> =>
    this.session(answerWithin, async ({ ask }) => {
      const status = await ask({ execute: "guest-exec-status", arguments: { pid } });
      if (!status["exited"]) return undefined;
      return {
        exitCode: status["exitcode"] ?? 128 + (status["signal"] ?? 0),
        stdout: decoded(status["out-data"]),
      };
    });

  /** Runs a short program to its end. */
  async run(path: string, ...args: string[]): Promise<Ended> {
    const pid = await this.start(path, ...args);
    for (let pause = 100; ; pause = Math.min(pause * 2, 2_000)) {
      await wait(pause);
      const ended = await this.ended(pid);
      if (ended !== undefined) return ended;
    }
  }

  /** The end of a file, read by the agent itself, which costs the machine next to nothing. */
  tail = (path: string, bytes: number): Promise<string> =>
    this.session(answerWithin, async ({ ask }) => {
      const handle = await ask({ execute: "guest-file-open", arguments: { path, mode: "r" } });
      const seek = { handle, offset: -bytes, whence: "end" };
      // A file that is shorter is read from its beginning.
      await ask({ execute: "guest-file-seek", arguments: seek }).catch(() => undefined);
      const read = await ask({ execute: "guest-file-read", arguments: { handle, count: bytes } });
      await ask({ execute: "guest-file-close", arguments: { handle } });
      return decoded(read["buf-b64"]);
    });

  /** An agent may have answers left for a client that has disconnected: they end where its echo comes. */
  private session<T>(limit: number, work: (exchange: Exchange) => Promise<T>): Promise<T> {
    const next = this.last.then(() =>
      jsonSession(this.socket, limit, async (exchange) => {
        const id = Math.floor(Math.random() * 1e9);
        const sync = { execute: "guest-sync", arguments: { id } };
        await exchange.ask(sync, (message) => message["return"] === id);
        return await work(exchange);
      }),
    );
    this.last = next.catch(() => undefined);
    return next;
  }
}
