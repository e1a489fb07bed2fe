import { type ChildProcess, spawn, type StdioOptions } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";

import { end, identityOf, isAlive, readPidFile } from "../../shared/pids";

/** A command that is to run until it is stopped. */
interface Program {
  readonly name: string;
  /** Program and arguments. They are visible to every user of the host: no secrets. */
  readonly command: readonly string[];
  /** @default that of this process */
  readonly cwd?: string;
  /** All that it gets of an environment. @default that of this process */
  readonly env?: Readonly<Record<string, string>>;
}

export interface ProcessStatus {
  readonly name: string;
  readonly pid: number | undefined;
  /** When it was started the last time. */
  readonly since: number;
  /** How often it has died by itself and was started again. */
  readonly restarts: number;
  /** How it ended the last time it died by itself. */
  readonly lastExit?: string;
}

interface Running {
  readonly program: Program;
  child?: ChildProcess;
  restarts: number;
  lastExit?: string;
  stopping: boolean;
  /** How often it has died in a row without having run for a while. */
  inARow: number;
  launchedAt: number;
  timer?: NodeJS.Timeout;
}

const firstRestartMs = 500;
const longestRestartMs = 20_000;
const steadyAfterMs = 60_000;
const endOfLogBytes = 4_000;

/**
 * Keeps processes running as a kubelet keeps static pods: what dies is started again, ever more
 * slowly.
 *
 * Each has `<name>.pid` and `<name>.log` in the folder, so that a daemon that was killed can be
 * followed by one that finds and ends what is left.
 */
export class Supervisor {
  private readonly running = new Map<string, Running>();

  constructor(
    private readonly folder: string,
    private readonly log: (message: string) => void,
  ) {
    process.on("exit", this.killNow);
  }

  start(program: Program): void {
    if (this.running.has(program.name)) {
      return;
    }
    fs.mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    const entry: Running = { program, restarts: 0, stopping: false, inARow: 0, launchedAt: 0 };
    this.running.set(program.name, entry);
    this.launch(entry);
  }

  isRunning(name: string): boolean {
    return this.running.get(name)?.child !== undefined;
  }

  status(): readonly ProcessStatus[] {
    return [...this.running.values()].map(({ program, child, launchedAt, restarts, lastExit }) => ({
      name: program.name,
      pid: child?.pid,
      since: launchedAt,
      restarts,
      ...(lastExit && { lastExit }),
    }));
  }

  /** The end of what a process has written. */
  endOfLog(name: string): string {
    try {
      const text = fs.readFileSync(this.file(name, "log"), "utf8");
      return text.slice(-endOfLogBytes).trimEnd();
    } catch {
      return "";
    }
  }

  /** Asks a process to end, and makes it. */
  async stop(name: string): Promise<void> {
    const entry = this.running.get(name);
    if (entry === undefined) {
      return;
    }
    entry.stopping = true;
    clearTimeout(entry.timer);
    const { child } = entry;
    if (child?.pid !== undefined) {
      await end(identityOf(child.pid), ["SIGTERM", "SIGKILL"]);
    }
    this.running.delete(name);
    fs.rmSync(this.file(name, "pid"), { force: true });
  }

  /** Ends what an earlier daemon left running, and nothing that merely has the same pid. */
  async endOrphans(): Promise<void> {
    const names = fs.existsSync(this.folder)
      ? fs.readdirSync(this.folder).filter((file) => file.endsWith(".pid"))
      : [];
    await Promise.all(
      names.map(async (file) => {
        const pidFile = path.join(this.folder, file);
        const left = readPidFile(pidFile);
        if (left && isAlive(left)) {
          this.log(`ending ${path.basename(file, ".pid")} (pid ${left.pid}) of an earlier run`);
          await end(left, ["SIGKILL"]);
        }
        fs.rmSync(pidFile, { force: true });
      }),
    );
  }

  /** Forgets this supervisor; call when everything is stopped. */
  close(): void {
    process.off("exit", this.killNow);
  }

  private file(name: string, ending: "pid" | "log"): string {
    return path.join(this.folder, `${name}.${ending}`);
  }

  private launch(entry: Running): void {
    const { name, command, cwd, env } = entry.program;
    const [file = "", ...args] = command;
    const logFile = fs.openSync(this.file(name, "log"), "a", 0o600);
    const stdio: StdioOptions = ["ignore", logFile, logFile];
    // A group of its own: Ctrl-C in the daemon's terminal must not end etcd before the API server.
    const child = spawn(file, args, { stdio, detached: true, cwd, env });
    fs.closeSync(logFile);
    entry.child = child;
    entry.launchedAt = Date.now();
    if (child.pid !== undefined) {
      const record = JSON.stringify(identityOf(child.pid));
      fs.writeFileSync(this.file(name, "pid"), record, { mode: 0o600 });
    }
    child.once("error", (error) => this.died(entry, error.message));
    child.once("exit", (code, signal) => this.died(entry, signal ?? `exit code ${code}`));
  }

  private died(entry: Running, how: string): void {
    entry.child = undefined;
    if (entry.stopping) {
      return;
    }
    entry.lastExit = how;
    entry.inARow = Date.now() - entry.launchedAt > steadyAfterMs ? 0 : entry.inARow + 1;
    const delay = Math.min(firstRestartMs * 2 ** entry.inARow, longestRestartMs);
    this.log(`${entry.program.name} died (${how}); starting it again in ${delay / 1000} s`);
    entry.timer = setTimeout(() => {
      entry.restarts += 1;
      this.launch(entry);
    }, delay);
    entry.timer.unref();
  }

  private readonly killNow = () => {
    for (const { child } of this.running.values()) {
      child?.kill("SIGKILL");
    }
  };
}
