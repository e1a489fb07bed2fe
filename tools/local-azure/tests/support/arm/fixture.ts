import { join } from "node:path";

import { testFolder } from "../../../../../tests/support/test-folder";
import { ResourceManager, ResourceManagerArgs } from "../../../arm/resource-manager";
import { Clock } from "../../../arm/durations";
import { issueToken } from "../../../machines/identity-token";
import { Machines, ScriptResult, VirtualMachine } from "../../../machines/machines";
import { Kind, valid } from "./valid-resources";

/** Machines that record their calls; `scriptResult` decides how scripts end. */
export class RecordingMachines implements Machines {
  readonly calls: string[] = [];
  scriptResult: (vm: VirtualMachine, script: string) => Promise<ScriptResult> | ScriptResult =
    () => ({
      exitCode: 0,
      stdout: "",
      stderr: "",
    });
  createError?: Error;

  async create(vm: VirtualMachine): Promise<void> {
    this.calls.push(`create ${vm.name} ${vm.privateAddress}`);
    if (this.createError) throw this.createError;
  }

  async runScript(vm: VirtualMachine, script: string): Promise<ScriptResult> {
    this.calls.push(`run ${script} on ${vm.name}`);
    return this.scriptResult(vm, script);
  }

  async restart(vm: VirtualMachine): Promise<void> {
    this.calls.push(`restart ${vm.name} ${vm.size}`);
  }

  /** Names of machines that have shut themselves down. */
  readonly shutDown = new Set<string>();

  hasShutDown = ({ name }: VirtualMachine): boolean => this.shutDown.has(name);

  async capture(vm: VirtualMachine, image: string): Promise<void> {
    this.calls.push(`capture ${vm.name} as ${image}`);
  }

  async remove(vm: VirtualMachine): Promise<void> {
    this.calls.push(`remove ${vm.name}`);
  }

  async resume(vms: readonly VirtualMachine[]): Promise<void> {
    this.calls.push(`resume ${vms.map(({ name }) => name).join(" ")}`);
  }

  async stop(): Promise<void> {
    this.calls.push("stop");
  }
}

/** A clock that tests advance. Sleepers wake in the order of their time. */
export class ManualClock implements Clock {
  private time = Date.parse("2026-11-21T09:00:00Z");
  private sleepers: { readonly at: number; readonly wake: () => void }[] = [];

  now(): Date {
    return new Date(this.time);
  }

  sleep(milliseconds: number): Promise<void> {
    return new Promise((wake) => this.sleepers.push({ at: this.time + milliseconds, wake }));
  }

  advance(seconds: number): void {
    this.time += seconds * 1000;
    const due = this.sleepers.filter(({ at }) => at <= this.time).sort((a, b) => a.at - b.at);
    this.sleepers = this.sleepers.filter(({ at }) => at > this.time);
    due.forEach(({ wake }) => wake());
  }

  /** Advances the time until the work is done. */
  async until<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const end = () => void (isDone = true);
    work.then(end, end);
    while (!isDone) {
      await new Promise((resolve) => setImmediate(resolve));
      const next = Math.min(...this.sleepers.map(({ at }) => at));
      if (Number.isFinite(next)) this.advance((next - this.time) / 1000);
    }
    return work;
  }
}

export function newArm(more: Partial<ResourceManagerArgs> = {}) {
  const folder = testFolder();
  const machines = new RecordingMachines();
  const args = {
    stateFile: join(folder, "resources.json"),
    requestLog: join(folder, "requests.jsonl"),
    machines,
    ...more,
  };
  return { arm: new ResourceManager(args), machines, args };
}

/** Creates the valid resources in order, up to and including `last`. */
export async function createResources(
  arm: ResourceManager,
  last: Kind = "extension",
): Promise<void> {
  for (const [kind, [id, body]] of Object.entries(valid)) {
    await arm.put(id, body);
    if (kind === last) return;
  }
}

/** Code and message of the error, or "not refused". */
export const refusedBy = (request: Promise<unknown>): Promise<string> =>
  request.then(
    () => "not refused",
    (error: { code?: string; message: string }) => `${error.code}: ${error.message}`,
  );

/** A token for Azure Resource Manager of an identity that there is, by which whoever asks has its rights and no others. */
export function tokenOf(arm: ResourceManager, resourceId: string): string {
  const { clientId, principalId } = arm.peek(resourceId) as Record<string, string>;
  const query = { "api-version": "2018-02-01", resource: "https://management.azure.com" };
  const { body } = issueToken(new URLSearchParams(query), [
    { resourceId, clientId: clientId!, principalId: principalId! },
  ]);
  return (body as { access_token: string }).access_token;
}

/** Everything that a client lists. */
export async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of list) found.push(one);
  return found;
}
