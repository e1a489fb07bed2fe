import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { folder } from "../task";

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
