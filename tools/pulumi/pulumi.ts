import { closeSync, mkdirSync, openSync, readFileSync, rmSync } from "node:fs";
import { basename, delimiter, dirname, join } from "node:path";

import type { Progress } from "../shared/progress";
import { exitCodeOf } from "../shared/run";
import { Events, type Outcome, Tail } from "./events";
import { endMarked, entriesOf, markedProcesses, type ProcessIdentity } from "../shared/pids";

/**
 * Names the run of the engine in its environment, which all that it starts inherits: the language
 * host, the program and plugins are known by it also when the engine and its lock file are gone.
 */
const variable = "ZONED_RUN";

export const environmentOfRun = (run: string): Record<string, string> => ({ [variable]: run });

/** Runs that this process waits for: they are nobody's leftovers. */
const underWay = new Set<string>();

/** What a killed engine, or one whose language host was killed, leaves behind ends with its run. */
export async function following<T>(run: string, work: () => Promise<T>): Promise<T> {
  underWay.add(run);
  try {
    return await work();
  } finally {
    underWay.delete(run);
    await endMarked(variable, (one) => one === run);
  }
}

const isLeftIn = (state: string) => (run: string) => dirname(run) === state && !underWay.has(run);

/** Engines that earlier commands, since killed, have left running in this state folder. */
export const enginesLeftIn = (state: string): ProcessIdentity[] =>
  markedProcesses(variable)
    .filter(({ mark }) => isLeftIn(state)(mark))
    .map(({ identity }) => identity)
    .filter(({ pid }) => isPulumi(pid));

/** Ends all that earlier commands have left running in this state folder. */
export const endRunsIn = (state: string): Promise<void> => endMarked(variable, isLeftIn(state));

/** Whether a process is the engine, by the name of its program. */
export const isPulumi = (pid: number): boolean =>
  basename(entriesOf(`/proc/${pid}/cmdline`)[0] ?? "") === "pulumi";

const followEvery = 200;

/** Advice of the engine for users who manage a stack by hand. */
const notForHere =
  /^(The resources in the stack have been deleted|If you want to remove the stack)/;

export interface PulumiOptions {
  /** Folder of the engine and its language host. */
  readonly binaries: string;
  readonly state: string;
  /** Folder of the Pulumi project. */
  readonly program: string;
  readonly passphrase: string;
  /** What else its environment has: where the providers are, in a rehearsal. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What would lead a rehearsal to a real cloud, backend or cluster. */
const foreign = /^(PULUMI_|ARM_|AZURE_|KUBECONFIG$|(no_)?grpc_proxy$)/;

/** What is loaded into all that the engine starts on Node.js. */
const preload = `--require ${JSON.stringify(join(__dirname, "preload.cjs"))}`;

/** The engine's own folder in a state folder. */
export const pulumiHome = (state: string): string => join(state, "pulumi-home");

/** The engine's environment: its own state and settings, and nothing of the user's accounts. */
export function environmentOf(options: PulumiOptions): NodeJS.ProcessEnv {
  const { binaries, state, passphrase, environment = {} } = options;
  const { PATH = process.env.PATH, ...more } = environment;
  const kept = Object.entries(process.env).filter(([name]) => !foreign.test(name));
  return {
    ...Object.fromEntries(kept),
    // The language host runs the `node` it finds first.
    PATH: [binaries, dirname(process.execPath), PATH].join(delimiter),
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ""} ${preload}`,
    // What else a folder's name may have, the engine takes as it is. Without a file beside each
    // checkpoint, which is not written whole: an engine killed meanwhile could not read its own
    // state any more ("failed to load checkpoint: EOF").
    PULUMI_BACKEND_URL: `file://${join(state, "backend").replaceAll(/[%?#]/g, encodeURIComponent)}?metadata=skip`,
    PULUMI_HOME: pulumiHome(state),
    PULUMI_CONFIG_PASSPHRASE: passphrase,
    PULUMI_SKIP_UPDATE_CHECK: "true",
    PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
    // Without it the engine does not know the option --event-log.
    PULUMI_DEBUG_COMMANDS: "true",
    ...more,
  };
}

/**
 * Runs an operation over a stack (`up`, `destroy` …), following its events; with a progress, the
 * user sees the engine's own output.
 *
 * The engine writes into a file, not into a pipe: should this process be killed, it can go on to an
 * orderly end.
 */
export async function operate(
  args: readonly string[],
  options: PulumiOptions,
  progress?: Progress,
): Promise<Ended & Outcome> {
  const stem = runOf(args, options);
  const events = new Events(`${stem}.events`);
  const output = new Tail(`${stem}.log`);
  const step = progress?.step(`pulumi ${args[0]}`);
  let stdout = "";
  const follow = (): void => {
    for (const line of output.lines()) {
      stdout += `${line}\n`;
      if (!notForHere.test(line)) progress?.line(line);
    }
    events.read();
    const { underWay } = events;
    const others = underWay.length > 3 ? ` and ${underWay.length - 3} more` : "";
    step?.update(`${underWay.slice(0, 3).join(", ")}${others}`);
  };
  const timer = setInterval(follow, followEvery);
  try {
    const log = openSync(`${stem}.log`, "w", 0o600);
    const words = [
      ...[...args, "--event-log", `${stem}.events`, "--non-interactive", "--suppress-progress"],
      ...["--color", progress?.isLiving ? "always" : "never"],
    ];
    const code = await following(stem, () => start(words, options, log, stem)).finally(() => {
      closeSync(log);
      follow();
    });
    return { code, stdout, stderr: "", ...events.outcome };
  } finally {
    clearInterval(timer);
    step?.done(false);
    for (const ending of ["log", "events"]) rmSync(`${stem}.${ending}`, { force: true });
  }
}

/** Runs a short command of the engine and captures what it prints. */
export async function pulumi(args: readonly string[], options: PulumiOptions): Promise<Ended> {
  const texts = { stdout: "", stderr: "" };
  const words = [...args, "--non-interactive", "--color", "never"];
  const run = runOf(args, options);
  const code = await following(run, () => start(words, options, texts, run));
  return { code, ...texts };
}

/** The name of a run of the engine, as a path in the state folder. */
const runOf = ([command]: readonly string[], { state }: PulumiOptions): string =>
  join(state, `${command}-${process.pid}-${process.hrtime.bigint()}`);

function start(
  args: readonly string[],
  options: PulumiOptions,
  output: number | { stdout: string; stderr: string },
  run: string,
): Promise<number> {
  const { binaries, program, state, signal } = options;
  mkdirSync(join(state, "backend"), { recursive: true, mode: 0o700 });
  // The official kubernetes plugin leaves kubeconfigs there, in clear.
  const temporary = `${run}.tmp`;
  mkdirSync(temporary, { mode: 0o700 });
  const env = {
    ...environmentOf(options),
    ...environmentOfRun(run),
    TMPDIR: temporary,
    // A preview keeps nothing, and the engine would still serialize the whole state after each resource.
    ...(args[0] === "preview" && { PULUMI_SKIP_CHECKPOINTS: "true" }),
  };
  const command = [join(binaries, "pulumi"), ...args];
  return exitCodeOf(command, { cwd: program, env, output, signal }).finally(() =>
    rmSync(temporary, { recursive: true, force: true }),
  );
}

/** What is wrong with the engine's own file of a stack's state; undefined when nothing is. */
export function damageOf(checkpoint: string): string | undefined {
  let file: unknown;
  try {
    file = JSON.parse(readFileSync(checkpoint, "utf8"));
  } catch {
    return "it is no JSON";
  }
  // The engine takes a file without these for an empty stack, and would create everything again.
  const { version, checkpoint: kept } = partsOf(file);
  const { stack, latest } = partsOf(kept);
  const { resources = [], pending_operations: pending = [] } = partsOf(latest);
  const isState =
    typeof version === "number" &&
    typeof stack === "string" &&
    Array.isArray(resources) &&
    Array.isArray(pending);
  return isState ? undefined : "it is JSON, but no state of a stack";
}

const partsOf = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
