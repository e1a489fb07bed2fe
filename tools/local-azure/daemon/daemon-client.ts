import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { checkout, loadTypeScript } from "../../shared/checkout";
import { holderOf } from "../../shared/lock";
import { pause } from "../../shared/concurrency";
import type { Progress } from "../../shared/progress";
import { Interrupted, UserError } from "../../shared/user-error";
import { clearMachines } from "../machines/qemu/qemu";
import { Supervisor } from "../machines/supervisor";
import { authorityFile } from "../arm/rest/listener";
import {
  type Address,
  type Attachment,
  type DaemonRecord,
  endpointOf,
  lockFile,
  recordFile,
  runningDaemon,
} from "./attachment";

const startTimeout = 60_000;
const stopTimeout = 15_000;
const answerTimeout = 5_000;
const pollInterval = 50;

const answers = ({ ports }: DaemonRecord): Promise<boolean> =>
  fetch(`${endpointOf(ports)}/local/health`, { signal: AbortSignal.timeout(answerTimeout) }).then(
    ({ ok }) => ok,
    () => false,
  );

/**
 * The daemon that serves this state folder, once it answers. A killed daemon does not answer, but its
 * process exists until the last of its threads has ended.
 */
async function answeringDaemon(
  state: string,
  signal: AbortSignal,
): Promise<DaemonRecord | undefined> {
  for (const until = Date.now() + startTimeout; ;) {
    const running = runningDaemon(state);
    if (running === undefined || (await answers(running))) return running;
    if (Date.now() > until) {
      throw new UserError(
        `the local Azure of ${state} is process ${running.pid}, which did not answer within ${startTimeout / 1000} s: ` +
          `kill it (kill -9 ${running.pid}) and run this again, which continues from its state`,
      );
    }
    await pause(pollInterval, signal);
  }
}

/** What a rehearsal needs to use a daemon. */
const attachmentTo = ({ ports }: DaemonRecord, state: string): Attachment => ({
  ports,
  authority: authorityFile(state),
  apiAddress: async (apiName) => {
    const response = await fetch(`${endpointOf(ports)}/local/health`);
    const { apis } = (await response.json()) as { apis: Readonly<Record<string, Address>> };
    return apis[apiName];
  },
});

/**
 * The daemon of this state folder, started when none runs. A new one continues from the state that
 * a crashed one left.
 */
export async function ensureDaemon(
  { state, binaries, port }: DaemonArguments,
  progress: Progress,
  signal: AbortSignal,
): Promise<Attachment> {
  const running = await answeringDaemon(state, signal);
  if (running) {
    if (port !== undefined && running.ports.resourceManager !== port) {
      throw new UserError(
        `the local Azure of ${state} listens on port ${running.ports.resourceManager} already, not on ${port}: run npm stop first, or omit --port`,
      );
    }
    return attachmentTo(running, state);
  }
  mkdirSync(state, { recursive: true, mode: 0o700 });
  return await progress.during("starting the local Azure", () =>
    launch({ state, binaries, port }, signal),
  );
}

async function launch(
  { state, binaries, port }: DaemonArguments,
  signal: AbortSignal,
): Promise<Attachment> {
  const errors = join(state, "daemon.err");
  const file = openSync(errors, "w", 0o600);
  const child = spawn(
    process.execPath,
    [
      ...[...loadTypeScript, join(__dirname, "daemon.ts"), state, binaries],
      ...(port === undefined ? [] : [String(port)]),
    ],
    {
      cwd: checkout,
      detached: true,
      stdio: ["ignore", file, file],
      // gRPC would write its own errors to stderr.
      env: { ...process.env, GRPC_VERBOSITY: "NONE" },
    },
  );
  closeSync(file);
  let ended = false;
  child.once("close", () => (ended = true));
  child.once("error", () => (ended = true));
  for (const until = Date.now() + startTimeout; Date.now() < until;) {
    const record = runningDaemon(state);
    if (record) {
      child.unref();
      return attachmentTo(record, state);
    }
    if (ended)
      throw new UserError(
        readFileSync(errors, "utf8").trim() || "the local Azure ended without a message",
      );
    await sleep(pollInterval, undefined, { signal }).catch(() => {
      child.kill("SIGTERM");
      throw new Interrupted();
    });
  }
  child.kill("SIGKILL");
  throw new UserError(
    `the local Azure did not answer within ${startTimeout / 1000} s; see ${join(state, "daemon.log")} and ${errors}`,
  );
}

/** Ends the daemon, and every process that it or an earlier one left running. */
export async function endDaemon(state: string): Promise<void> {
  const pid = runningDaemon(state)?.pid ?? holderOf(lockFile(state))?.pid;
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    if (pid === undefined || holderOf(lockFile(state))?.pid !== pid) break;
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended already.
    }
    const until = Date.now() + stopTimeout;
    while (holderOf(lockFile(state))?.pid === pid && Date.now() < until) await sleep(pollInterval);
  }
  await Promise.all(
    processFolders(join(state, "machines")).map((folder) => {
      const supervisor = new Supervisor(folder, () => undefined);
      return supervisor.endOrphans().finally(() => supervisor.close());
    }),
  );
  await clearMachines(state);
  for (const file of [recordFile(state), lockFile(state)]) rmSync(file, { force: true });
}

/** Folders with pid files of a supervisor. */
function processFolders(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    const pidFiles = entries.filter((entry) => entry.isFile() && entry.name.endsWith(".pid"));
    return [...new Set(pidFiles.map((entry) => entry.parentPath))];
  } catch {
    return [];
  }
}

export interface DaemonArguments {
  readonly state: string;
  readonly binaries: string;
  /** The first of seven consecutive ports. @default any free ports */
  readonly port?: number;
}
