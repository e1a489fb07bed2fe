import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { connect, type Socket } from "node:net";

import type { ScriptResult } from "../../machines";
import { azureServices } from "../network/azure-services";

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
async function jsonSession<T>(
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

/** Where Azure's agent keeps a custom script. */
const folder = "/var/lib/waagent/custom-script/download/0";
const unit = "zoned-custom-script.scope";
const log = "/var/log/zoned.log";

/** Azure ends a script after this, and reports it as failed. */
const longestMs = 90 * 60_000;
const keptBytes = 4096;
/** The agent writes each look to the journal, which an emulated processor notices. */
const lookEvery = 3_000;
const looksPerStep = 4;

/** The step that a machine's log says has begun last, with the half it belongs to. */
const stepIn = (text: string): string | undefined =>
  [...text.matchAll(/(first boot|bootstrap): (.+): begins$/gm)]
    .map(([, half, step]) => `${half}: ${step}`)
    .at(-1);

/** What begins or has ended now on a machine, by its log. */
const currentStep = (agent: Agent): Promise<string | undefined> =>
  agent.tail(log, keptBytes).then(stepIn, () => undefined);

async function must(agent: Agent, path: string, ...args: string[]): Promise<string> {
  const { exitCode, stdout } = await agent.run(path, ...args);
  if (exitCode !== 0) throw new Error(`${path} ${args.join(" ")} ended with ${exitCode} on it`);
  return stdout;
}

/**
 * Runs a script as Azure's agent does: as root, from a file that only root reads, in a unit of its
 * own.
 *
 * @param onStep called with the step that is under way
 */
export async function runCustomScript(
  agent: Agent,
  script: string,
  onStep: (step: string) => void,
): Promise<ScriptResult> {
  // What is stopped is one that an earlier local Azure began and did not see end.
  const prepare = `systemctl stop ${unit}; install -d -m 0700 ${folder}`;
  await must(agent, "/bin/sh", "-c", `${prepare} && install -m 0700 /dev/null ${folder}/script.sh`);
  await agent.write(`${folder}/script.sh`, script);
  // A scope and not a service, whose end systemd would be asked for by its bus, and report every
  // other unit too.
  const pid = await agent.start(
    ...["/bin/sh", "-c"],
    `cd ${folder} && exec systemd-run --quiet --scope --collect --unit=${unit} ./script.sh >stdout 2>stderr`,
  );
  const until = Date.now() + longestMs;
  let ended = await agent.ended(pid);
  for (let looks = 1; ended === undefined; looks += 1) {
    if (Date.now() > until) {
      await agent.run("/usr/bin/systemctl", "stop", unit);
      ended = { exitCode: 124, stdout: "" };
      break;
    }
    await wait(lookEvery);
    const step = looks % looksPerStep === 0 ? await currentStep(agent) : undefined;
    if (step !== undefined) onStep(step);
    ended = await agent.ended(pid);
  }
  const [stdout, stderr] = await Promise.all(
    ["stdout", "stderr"].map((name) => agent.tail(`${folder}/${name}`, keptBytes).catch(() => "")),
  );
  return { exitCode: ended.exitCode, stdout: stdout ?? "", stderr: stderr ?? "" };
}

const units = "/etc/systemd/system";
const name = "local-azure";

/**
 * Leads a machine's loopback to the local Azure's Resource Manager, on the port that it has on the
 * host: one address is right for the program, which runs on the host, and in azure.json. Pods get
 * the machine's authorities, and so this one, as on Azure.
 */
export async function leadToResourceManager(
  agent: Pick<Agent, "write" | "run">,
  port: number,
  authority: string,
): Promise<void> {
  await agent.write(`/etc/ssl/certs/${name}.pem`, readFileSync(authority, "utf8"));
  await agent.write(
    `${units}/${name}.socket`,
    `[Socket]\nListenStream=127.0.0.1:${port}\n[Install]\nWantedBy=sockets.target\n`,
  );
  await agent.write(
    `${units}/${name}.service`,
    `[Service]\nExecStart=/usr/lib/systemd/systemd-socket-proxyd ${azureServices.resourceManager.address}:443\n`,
  );
  await agent.run("/usr/bin/systemctl", "enable", "--now", `${name}.socket`);
}
