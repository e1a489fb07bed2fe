import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import type { Breakpoint, Fault } from "../../local-azure/arm/faults";
import { type LoggedRequest, RequestLog } from "../../local-azure/arm/requests";
import type { Resource } from "../../local-azure/arm/resources/resource";
import { endpointOf, runningDaemon } from "../../local-azure/daemon/attachment";
import { endDaemon, ensureDaemon } from "../../local-azure/daemon/daemon-client";
import { type Operation, readOperations } from "../../local-azure/daemon/operation-log";
import { apiNameIn, reachableHere } from "../../local-azure/rehearsal/cluster-view";
import { Rehearsal, type Run } from "../../local-azure/rehearsal/rehearsal";
import { Progress } from "../../shared/progress";
import { run } from "../../shared/run";
import { messageOf } from "../../shared/user-error";
import { pulumiHome } from "../../pulumi/pulumi";
import { entriesOf, markedProcesses } from "../../shared/pids";
import { sendToAzure } from "../azure-request";

/** How a command ended, and all that it said. */
export interface CommandResult {
  readonly succeeded: boolean;
  readonly text: string;
  readonly run?: Run;
}

export type Victim = "engine" | "language host" | "program" | "provider";

const silent = new Progress({ write: () => undefined });
const endsWithin = 5_000;

/** One stack on a local Azure of its own, and what a person or a fault does to it. */
export class Life {
  constructor(
    readonly state: string,
    readonly stack: string,
    private readonly binaries: string,
    private readonly signal: AbortSignal,
  ) {}

  /** What `npm start` and `npm stop` begin with. */
  private async open(settings: Readonly<Record<string, unknown>>): Promise<Rehearsal> {
    const { state, stack, binaries, signal } = this;
    const azure = await ensureDaemon({ state, binaries }, silent, signal);
    return Rehearsal.open({ state, stack, binaries, azure, settings, signal });
  }

  /**
   * `npm start` with these settings, what `npm stop` does before it removes anything, or `pulumi
   * refresh`.
   */
  async command(
    operation: "up" | "destroy" | "refresh",
    settings: Readonly<Record<string, unknown>>,
    ...flags: readonly string[]
  ): Promise<CommandResult> {
    try {
      const rehearsal = await this.open(settings);
      if (operation === "destroy") await rehearsal.unprotect();
      const ended = await rehearsal[operation](...flags);
      const text = [ended.stdout, ended.stderr, ...ended.diagnostics].join("\n");
      return { succeeded: ended.code === 0, text, run: ended };
    } catch (error) {
      if (this.signal.aborted) throw error;
      return { succeeded: false, text: messageOf(error) };
    }
  }

  /** Begins the local Azure without a run of the engine, so that faults and breakpoints can be set. */
  async begin(): Promise<void> {
    const { state, binaries, signal } = this;
    await ensureDaemon({ state, binaries }, silent, signal);
  }

  setBreakpoint = (breakpoint: Breakpoint): Promise<unknown> =>
    this.send("PUT", "/local/breakpoint", breakpoint);

  /** Answers when the request is held. */
  breakpointReached = (): Promise<unknown> => this.send("GET", "/local/breakpoint");
  clearBreakpoint = (): Promise<unknown> => this.send("DELETE", "/local/breakpoint");
  fault = (fault: Fault): Promise<unknown> => this.send("POST", "/local/faults", fault);
  clearFaults = (): Promise<unknown> => this.send("DELETE", "/local/faults");
  /** Which of the faults have come to pass, by the order in which they were set. */
  async metFaults(): Promise<number[]> {
    const faults = (await this.send("GET", "/local/faults")) as { fault: Fault; matches: number }[];
    return faults.flatMap(({ fault, matches }, index) =>
      matches >= (fault.nth ?? 1) ? index : [],
    );
  }

  /**
   * Whether the language host hands hooks on to the engine. The one that is built from Go modules is
   * of before there were any.
   */
  hasHooks = (): boolean =>
    readFileSync(join(this.binaries, "pulumi-language-nodejs")).includes("RegisterResourceHook");

  /** Anything of Azure's REST side, behind Pulumi's back. */
  async send(method: string, path: string, body?: unknown): Promise<unknown> {
    const ports = runningDaemon(this.state)?.ports;
    if (ports === undefined) throw new Error(`no local Azure runs on ${this.state}`);
    return sendToAzure(endpointOf(ports), { method, path, body, signal: this.signal });
  }

  /** SIGKILL to a process of the run that is under way; whether there was one. */
  kill(victim: Victim): boolean {
    const daemon = runningDaemon(this.state)?.pid;
    const pids =
      victim === "provider"
        ? [daemon]
        : processesOf(this.state).flatMap(({ pid, role }) => (role === victim ? [pid] : []));
    return pids.map((pid) => pid !== undefined && killed(pid)).includes(true);
  }

  /** What is left of runs that have ended, after a moment to end by itself. */
  async leftovers(): Promise<readonly EngineProcess[]> {
    for (const until = Date.now() + endsWithin; Date.now() < until; await sleep(100)) {
      if (processesOf(this.state).length === 0) return [];
    }
    return processesOf(this.state);
  }

  /** Ends every process; what is on the disk stays. */
  async end(): Promise<void> {
    for (const { pid } of processesOf(this.state)) killed(pid);
    await endDaemon(this.state);
  }

  /** Ends every process and forgets everything. */
  async remove(): Promise<void> {
    await this.end();
    rmSync(this.state, { recursive: true, force: true, maxRetries: 5 });
  }

  requests = (): LoggedRequest[] => new RequestLog(join(this.state, "requests.jsonl")).read();
  operations = (): Operation[] => readOperations(this.state);

  /** What Azure has, as its own file says. */
  azure(): readonly Resource[] {
    const file = join(this.state, "resources.json");
    if (!existsSync(file)) return [];
    return (JSON.parse(readFileSync(file, "utf8")) as { resources: Resource[] }).resources;
  }

  /** The engine's state, secrets encrypted, and the stack's outputs. */
  async stackState(settings: Readonly<Record<string, unknown>>): Promise<StackState> {
    const rehearsal = await this.open(settings);
    const state = (await rehearsal.stackExport()) as { deployment: StackState["deployment"] };
    return { deployment: state.deployment, outputs: await rehearsal.outputs() };
  }

  async kubectl(kubeconfig: string, words: readonly string[], input = ""): Promise<string> {
    const { ports } = runningDaemon(this.state)!;
    const health = await fetch(`${endpointOf(ports)}/local/health`);
    const { apis } = (await health.json()) as {
      apis: Record<string, { host: string; port: number }>;
    };
    const address = apis[apiNameIn(kubeconfig)];
    if (address === undefined) throw new Error(`no API answers to ${apiNameIn(kubeconfig)}`);
    const file = join(this.state, "kubeconfig-of-the-suite");
    writeFileSync(file, reachableHere(kubeconfig, address), { mode: 0o600 });
    const kubectl = [join(this.binaries, "kubectl"), "--kubeconfig", file];
    return run([...kubectl, "--request-timeout", "30s", ...words], { input });
  }
}

/** A process that a run of the engine consists of. */
interface EngineProcess {
  readonly pid: number;
  readonly role: "engine" | "language host" | "program" | "other";
}

/** All that a run of the engine on this state folder has started, children of its children too. */
const processesOf = (state: string): EngineProcess[] =>
  markedProcesses("PULUMI_HOME")
    .filter(({ mark }) => mark === pulumiHome(state))
    .map(({ identity: { pid } }) => ({ pid, role: roleOf(entriesOf(`/proc/${pid}/cmdline`)) }));

/** One that has ended has no command line any more, and belongs to no case. */
function roleOf(command: readonly string[]): EngineProcess["role"] {
  const [program = "", ...args] = command;
  if (program.endsWith("/pulumi")) return "engine";
  if (program.endsWith("pulumi-language-nodejs")) return "language host";
  return args.some((word) => word.includes("@pulumi/pulumi/cmd/run")) ? "program" : "other";
}

export interface StackState {
  readonly deployment: {
    readonly resources?: readonly Recorded[];
    readonly pending_operations?: readonly { readonly resource: Recorded }[];
  };
  readonly outputs: Readonly<Record<string, unknown>>;
}

/** A resource in the engine's state. */
export interface Recorded {
  readonly urn: string;
  readonly type: string;
  readonly id?: string;
  readonly delete?: boolean;
  readonly inputs?: Readonly<Record<string, unknown>>;
}

function killed(pid: number): boolean {
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch {
    return false;
  }
}

/** Puts a folder in the place of another, quicker than a file at a time. */
export async function copyFolder(from: string, to: string): Promise<void> {
  rmSync(to, { recursive: true, force: true });
  await run(["cp", "-a", from, to]);
}
