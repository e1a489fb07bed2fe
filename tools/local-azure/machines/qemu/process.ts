import { type ChildProcess, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { setPriority } from "node:os";
import { setTimeout as wait } from "node:timers/promises";

import { end, identityOf, isAlive, type ProcessIdentity, readPidFile } from "../../../shared/pids";

const look = 250;

/**
 * Put before a lasting process's command, as nice is. It is a session of its own, and between
 * sessions Linux may know no niceness but their group's.
 */
export const atNiceness = (niceness: number): readonly string[] => [
  ...["sh", "-c", 'echo "$0" 2>/dev/null >/proc/self/autogroup; exec nice -n "$0" "$@"'],
  String(niceness),
];

/** A process that outlives the one that started it; the next one takes it over by its pid file. */
export class LastingProcess {
  private identity: ProcessIdentity | undefined;
  private child: ChildProcess | undefined;

  /** @param stem path of its files, which are `<stem>.pid` and `<stem>.log` */
  constructor(private readonly stem: string) {
    this.identity = readPidFile(`${stem}.pid`);
  }

  get isAlive(): boolean {
    return this.identity !== undefined && isAlive(this.identity);
  }

  /** Whether it was ever started. */
  get hasBegun(): boolean {
    return existsSync(`${this.stem}.log`);
  }

  /** Memory that it has now. */
  get residentMib(): number {
    try {
      const status = readFileSync(`/proc/${this.isAlive ? this.identity?.pid : 0}/status`, "utf8");
      return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024;
    } catch {
      return 0;
    }
  }

  /** The end of what it has written. */
  get words(): string {
    try {
      return readFileSync(`${this.stem}.log`, "utf8").trim().slice(-1000);
    } catch {
      return "";
    }
  }

  start(command: readonly string[], env: Readonly<Record<string, string>>): void {
    const [file = "", ...args] = command;
    const log = openSync(`${this.stem}.log`, "w", 0o600);
    const child = spawn(file, args, {
      detached: true,
      stdio: ["ignore", log, log],
      env: { ...process.env, ...env },
    });
    closeSync(log);
    child.on("error", () => undefined);
    child.unref();
    this.child = child;
    if (child.pid === undefined) return;
    this.identity = identityOf(child.pid);
    writeFileSync(`${this.stem}.pid`, JSON.stringify(this.identity), { mode: 0o600 });
  }

  /** Waits for its end, and says whether that came in time. */
  async hasEndedWithin(milliseconds: number): Promise<boolean> {
    for (const until = Date.now() + milliseconds; this.isAlive; await wait(look)) {
      if (Date.now() > until) return false;
    }
    return true;
  }

  setNiceness(niceness: number): void {
    if (!this.isAlive) return;
    const folder = `/proc/${this.identity!.pid}`;
    try {
      writeFileSync(`${folder}/autogroup`, String(niceness));
    } catch {
      // This kernel has no such groups.
    }
    for (const thread of readdirSync(`${folder}/task`)) {
      try {
        setPriority(Number(thread), niceness);
      } catch {
        // It has ended by now.
      }
    }
  }

  async kill(): Promise<void> {
    if (this.identity !== undefined) await end(this.identity, ["SIGKILL"]);
    this.forget();
  }

  forget(): void {
    this.identity = undefined;
    rmSync(`${this.stem}.pid`, { force: true });
  }

  /** How it ended, as far as that is known: only its parent gets to know it. */
  get ending(): string {
    const { exitCode = null, signalCode = null } = this.child ?? {};
    return signalCode ?? (exitCode === null ? "an unknown exit code" : `exit code ${exitCode}`);
  }
}
