import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { type Address, type Attachment, endpointOf } from "./attachment";
import { type DaemonArguments, type DaemonRecord, lockFile, recordFile } from "./daemon-record";
import { holderOf, isAlive } from "./lock";
import { clearMachines } from "./machines/qemu";
import { Supervisor } from "./machines/supervisor";
import type { Progress } from "./progress";
import { Interrupted, Trouble } from "./trouble";

const startWithin = 60_000;
const stopWithin = 15_000;
const answerWithin = 5_000;
const look = 50;

/** The daemon that serves this state folder now, if one does. */
export function runningDaemon(state: string): DaemonRecord | undefined {
  try {
    const record = JSON.parse(readFileSync(recordFile(state), "utf8")) as DaemonRecord;
    return isAlive(record) && holderOf(lockFile(state))?.pid === record.pid ? record : undefined;
  } catch {
    return undefined;
  }
}

const answers = ({ ports }: DaemonRecord): Promise<boolean> =>
  fetch(`${endpointOf(ports)}/local/health`, { signal: AbortSignal.timeout(answerWithin) }).then(
    ({ ok }) => ok,
    () => false,
  );

/**
 * The daemon that serves this state folder, once it answers: one that was killed is there until the last of its
 * threads has ended, and answers nobody.
 */
async function answeringDaemon(
  state: string,
  signal: AbortSignal,
): Promise<DaemonRecord | undefined> {
  for (const until = Date.now() + startWithin; ;) {
    const running = runningDaemon(state);
    if (running === undefined || (await answers(running))) return running;
    if (Date.now() > until) {
      throw new Trouble(
        `the local Azure of ${state} is process ${running.pid}, which did not answer within ${startWithin / 1000} s: ` +
          `kill it (kill -9 ${running.pid}) and run this again, which goes on from where it was`,
      );
    }
    await sleep(look, undefined, { signal }).catch(() => {
      throw new Interrupted();
    });
  }
}

/** A daemon as the thing that a rehearsal attaches to. */
const attachmentTo = ({ ports }: DaemonRecord): Attachment => ({
  ports,
  apiAddress: async (apiName) => {
    const response = await fetch(`${endpointOf(ports)}/local/health`);
    const { apis } = (await response.json()) as { apis: Readonly<Record<string, Address>> };
    return apis[apiName];
  },
});

/**
 * The daemon of this state folder, started when none runs; one that died is followed by one that
 * takes up its work.
 */
export async function ensureDaemon(
  { state, binaries, port }: DaemonArguments,
  progress: Progress,
  signal: AbortSignal,
): Promise<Attachment> {
  const running = await answeringDaemon(state, signal);
  if (running) {
    if (port !== undefined && running.ports.resourceManager !== port) {
      throw new Trouble(
        `the local Azure of ${state} listens on port ${running.ports.resourceManager} already, not on ${port}: run npm stop first, or leave --port out`,
      );
    }
    return attachmentTo(running);
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
      ...["-r", "ts-node/register/transpile-only", join(__dirname, "daemon.ts"), state, binaries],
      ...(port === undefined ? [] : [String(port)]),
    ],
    {
      cwd: join(__dirname, ".."),
      detached: true,
      stdio: ["ignore", file, file],
      // What goes wrong is told in words of our own.
      env: { ...process.env, GRPC_VERBOSITY: "NONE" },
    },
  );
  closeSync(file);
  let ended = false;
  child.once("close", () => (ended = true));
  child.once("error", () => (ended = true));
  for (const until = Date.now() + startWithin; Date.now() < until;) {
    const record = runningDaemon(state);
    if (record) {
      child.unref();
      return attachmentTo(record);
    }
    if (ended)
      throw new Trouble(
        readFileSync(errors, "utf8").trim() || "the local Azure ended without a word",
      );
    await sleep(look, undefined, { signal }).catch(() => {
      child.kill("SIGTERM");
      throw new Interrupted();
    });
  }
  child.kill("SIGKILL");
  throw new Trouble(
    `the local Azure did not answer within ${startWithin / 1000} s; see ${join(state, "daemon.log")} and ${errors}`,
  );
}

/** Ends the daemon and every process that it or a dead one before it has left. */
export async function endDaemon(state: string): Promise<void> {
  const pid = runningDaemon(state)?.pid ?? holderOf(lockFile(state))?.pid;
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    if (pid === undefined || holderOf(lockFile(state))?.pid !== pid) break;
    try {
      process.kill(pid, signal);
    } catch {
      // It ended by itself.
    }
    const until = Date.now() + stopWithin;
    while (holderOf(lockFile(state))?.pid === pid && Date.now() < until) await sleep(look);
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

/** Folders in which a supervisor has written down what it runs. */
function processFolders(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    const found = entries.filter((entry) => entry.isFile() && entry.name.endsWith(".pid"));
    return [...new Set(found.map((entry) => entry.parentPath))];
  } catch {
    return [];
  }
}
