import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Machines, ScriptResult, VirtualMachine } from "../machines/machines";
import { Clock } from "./clock";
import { Cloud, CloudArgs } from "./cloud";
import { Body } from "./resource-type";
import { changed, Kind, sound } from "./sample";

/** Machines for tests: they remember what they were told, and scripts end as `outcome` says. */
export class RememberedMachines implements Machines {
  readonly told: string[] = [];
  outcome: (vm: VirtualMachine, script: string) => Promise<ScriptResult> | ScriptResult = () => ({
    exitCode: 0,
    stdout: "",
    stderr: "",
  });
  trouble?: Error;

  async create(vm: VirtualMachine): Promise<void> {
    this.told.push(`create ${vm.name} ${vm.privateAddress}`);
    if (this.trouble) throw this.trouble;
  }

  async runScript(vm: VirtualMachine, script: string): Promise<ScriptResult> {
    this.told.push(`run ${script} on ${vm.name}`);
    return this.outcome(vm, script);
  }

  async restart(vm: VirtualMachine): Promise<void> {
    this.told.push(`restart ${vm.name} ${vm.size}`);
  }

  async remove(vm: VirtualMachine): Promise<void> {
    this.told.push(`remove ${vm.name}`);
  }

  async resume(vms: readonly VirtualMachine[]): Promise<void> {
    this.told.push(`resume ${vms.map(({ name }) => name).join(" ")}`);
  }

  async stop(): Promise<void> {
    this.told.push("stop");
  }
}

/** Time that passes only when somebody sleeps. Sleepers wake in the order of their time. */
export class PlayedClock implements Clock {
  private time = Date.parse("2026-11-21T09:00:00Z");
  private sleepers: { readonly at: number; readonly wake: () => void }[] = [];

  now(): Date {
    return new Date(this.time);
  }

  sleep(milliseconds: number): Promise<void> {
    return new Promise((wake) => this.sleepers.push({ at: this.time + milliseconds, wake }));
  }

  pass(seconds: number): void {
    this.time += seconds * 1000;
    const due = this.sleepers.filter(({ at }) => at <= this.time).sort((a, b) => a.at - b.at);
    this.sleepers = this.sleepers.filter(({ at }) => at > this.time);
    due.forEach(({ wake }) => wake());
  }

  /** Lets time pass until the work is done. */
  async until<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const end = () => void (isDone = true);
    work.then(end, end);
    while (!isDone) {
      await new Promise((resolve) => setImmediate(resolve));
      const next = Math.min(...this.sleepers.map(({ at }) => at));
      if (Number.isFinite(next)) this.pass((next - this.time) / 1000);
    }
    return work;
  }
}

const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

export function newCloud(more: Partial<CloudArgs> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "zoned-cloud-"));
  folders.push(folder);
  const machines = new RememberedMachines();
  const args = {
    stateFile: join(folder, "cloud.json"),
    requestLog: join(folder, "requests.jsonl"),
    machines,
    ...more,
  };
  return { cloud: new Cloud(args), machines, args };
}

/** Puts sound bodies, one after another, up to and with the last kind. */
export async function build(cloud: Cloud, last: Kind = "extension"): Promise<void> {
  for (const [kind, [id, body]] of Object.entries(sound)) {
    await cloud.put(id, body);
    if (kind === last) return;
  }
}

/** Code and message of a refusal, or that there was none. */
export const refusedBy = (request: Promise<unknown>): Promise<string> =>
  request.then(
    () => "not refused",
    (error: { code?: string; message: string }) => `${error.code}: ${error.message}`,
  );

/** What Azure says to one change of a sound body, put where everything before it is there and it is not. */
export async function refusalOf(kind: Kind, change: Body): Promise<string> {
  const { cloud } = newCloud();
  const kinds = Object.keys(sound) as Kind[];
  const before = kinds[kinds.indexOf(kind) - 1];
  if (before !== undefined) await build(cloud, before);
  const [id] = sound[kind];
  const refusal = await refusedBy(cloud.put(id, changed(kind, change)));
  if (cloud.peek(id) !== undefined)
    throw new Error(`${kind} was refused and is there all the same`);
  return refusal;
}
