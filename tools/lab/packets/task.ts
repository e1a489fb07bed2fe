import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { run } from "../../shared/run";
import { messageOf } from "../../shared/user-error";
import type { Message } from "./enter";

/** Where everything lies that a lab writes: in memory, and gone with its namespaces. */
export const folder = "/run/lab";

export const output = (...command: readonly string[]): Promise<string> => run(command);

/** One command a line. */
export async function runAll(commands: string): Promise<void> {
  for (const line of commands.split("\n").map((text) => text.trim())) {
    if (line !== "") await run(line.split(/\s+/));
  }
}

export const reportProgress = (progress: string): void => send({ progress });

function send<T>(message: Message<T>): void {
  process.send?.(message);
}

/**
 * What a file that `inLab` runs does: `work` on its task, in namespaces where nothing is yet but a
 * loopback.
 */
export function runLabTask<Task, Result>(work: (task: Task) => Promise<Result>): void {
  // The process that waits for the result has ended.
  process.on("disconnect", () => process.exit(1));
  const task = JSON.parse(process.argv[2] ?? "") as Task;
  prepare()
    .then(() => work(task))
    .then(
      (result) => process.send?.({ result }, () => process.exit(0)),
      (error: unknown) => {
        process.stderr.write(`${messageOf(error)}\n`);
        process.exit(1);
      },
    );
}

const kernel = {
  "ipv4/ip_forward": "1",
  "ipv6/conf/all/forwarding": "1",
  // Every rejected packet is answered: not one a second, nor as many as the kernel lets all
  // namespaces together, with a burst of fifty.
  "ipv4/icmp_ratelimit": "0",
  "ipv4/icmp_ratemask": "0",
  "ipv6/icmp/ratelimit": "0",
};

const resolvers = "/etc/resolv.conf";

async function prepare(): Promise<void> {
  // No name server answers here, and iptables would wait for one at every address.
  if (existsSync(resolvers)) await output("mount", "--bind", "/dev/null", resolvers);
  await runAll("mount -t tmpfs tmpfs /run\nip link set lo up");
  mkdirSync(folder);
  for (const [name, value] of Object.entries(kernel)) {
    writeFileSync(join("/proc/sys/net", name), value);
  }
}

const pollMs = 200;

/** A program of the lab, which ends with it at the latest. */
export class Running {
  constructor(
    readonly name: string,
    private readonly child: ChildProcess,
    private readonly log: string,
  ) {}

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Waits for what the program is to bring about; its end is an error with the end of its log. */
  async until(what: string, seconds: number, look: () => Promise<boolean>): Promise<void> {
    for (const last = Date.now() + seconds * 1000; Date.now() < last; await wait(pollMs)) {
      const { exitCode, signalCode } = this.child;
      if (exitCode !== null || signalCode !== null) {
        throw new Error(`${this.name} ended with ${exitCode ?? signalCode}:\n${this.logTail()}`);
      }
      if (await look().catch(() => false)) return;
    }
    throw new Error(`${what}: not within ${seconds} s; its log:\n${this.logTail()}`);
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill();
    await ended;
  }

  private logTail(): string {
    return readFileSync(this.log, "utf8").split("\n").slice(-15).join("\n");
  }
}

export function start(name: string, command: string, args: readonly string[]): Running {
  const log = join(folder, `${name}.log`);
  const to = openSync(log, "a");
  const child = spawn(command, [...args], { stdio: ["ignore", to, to] });
  closeSync(to);
  return new Running(name, child, log);
}
