import { join } from "node:path";

import { testFolder } from "../../../../../tests/support/test-folder";
import { ResourceManager, ResourceManagerArgs } from "../../../arm/resource-manager";
import { Clock } from "../../../arm/durations";
import type { Body } from "../../../arm/resources/resource";
import { issueToken } from "../../../machines/identity-token";
import { Machines, PowerAction, ScriptResult, VirtualMachine } from "../../../machines/machines";
import { Kind, valid, withChange } from "./valid-resources";

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

/** What changes in a valid body, and how the refusal of it begins: Azure's code, and by a pattern what the message names. */
type Refusal = readonly [change: Body, code: string];

const refusal = (code: string) => expect.stringMatching(new RegExp(`^${code}`));
const namesIn = (change: Body) => Object.keys(change).join(" and ");

/** All resources before those of this kind, and the answer to a valid body with a change. */
async function before(kind: Kind) {
  const { arm } = newArm();
  const kinds = Object.keys(valid) as Kind[];
  const last = kinds[kinds.indexOf(kind) - 1];
  if (last !== undefined) await createResources(arm, last);
  const [id] = valid[kind];
  return {
    answerTo: (change: Body) => refusedBy(arm.put(id, withChange(kind, change))),
    exists: () => arm.peek(id) !== undefined,
  };
}

/** The creation of one is refused, and there is none afterwards. */
export function itRefuses(kind: Kind, refusals: readonly Refusal[]): void {
  it.each(refusals.map(([change, code]) => [namesIn(change), code, change] as const))(
    `refuses a ${kind} for its %s: %s`,
    async (_, code, change) => {
      const { answerTo, exists } = await before(kind);

      expect(await answerTo(change)).toEqual(refusal(code));
      expect(exists()).toBe(false);
    },
  );
}

/** Limits as Azure's REST reference and its pages of limits name them. */
export function itLimits(
  kind: Kind,
  limits: readonly (readonly [
    path: string,
    taken: readonly unknown[],
    refused: readonly unknown[],
    code: string,
  ])[],
): void {
  it.each(limits)(
    `takes the last %s of a ${kind} that Azure takes, and refuses the next`,
    async (path, taken, refused, code) => {
      const { answerTo, exists } = await before(kind);

      for (const value of refused) {
        expect([value, await answerTo({ [path]: value })]).toEqual([value, refusal(code)]);
      }
      expect(exists()).toBe(false);
      for (const value of taken) {
        const answer = await (await before(kind)).answerTo({ [path]: value });
        expect([value, answer]).toEqual([value, "not refused"]);
      }
    },
  );
}

/** One that is in use stays as it is. */
export function itNeverChanges(kind: Kind, refusals: readonly Refusal[]): void {
  it.each(refusals.map(([change, code]) => [namesIn(change), code, change] as const))(
    `does not change of a ${kind} its %s: %s`,
    async (_, code, change) => {
      const { arm } = newArm();
      await createResources(arm);
      const [id] = valid[kind];
      const shown = arm.peek(id);

      expect(await refusedBy(arm.put(id, withChange(kind, change)))).toEqual(refusal(code));
      expect(arm.peek(id)).toEqual(shown);
    },
  );
}

/** One request of several, or what else happens between them. */
export type Step = (arm: ResourceManager) => unknown;

export const put =
  (id: string, body: Body): Step =>
  (arm) =>
    arm.put(id, body);
export const patch =
  (id: string, body: Body): Step =>
  (arm) =>
    arm.patch(id, body);
export const remove =
  (id: string): Step =>
  (arm) =>
    arm.delete(id);
export const power =
  (id: string, action: PowerAction): Step =>
  (arm) =>
    arm.power(id, action, { perform: () => undefined });

/** A Resource Manager with all resources up to this kind, after these requests. */
async function after(last: Kind | undefined, steps: readonly Step[]): Promise<ResourceManager> {
  const { arm } = newArm();
  if (last !== undefined) await createResources(arm, last);
  for (const step of steps) await step(arm);
  return arm;
}

export const taken = "not refused";

/** What is asked, how the answer to the last of these requests begins, and the requests. */
export type Answer = readonly [what: string, answer: string, ...steps: Step[]];

/** Requests beside all resources up to this kind. */
export function itAnswers(last: Kind | undefined, answers: readonly Answer[]): void {
  it.each(answers.map(([what, answer, ...steps]) => ({ what, answer, steps })))(
    "$what: $answer",
    async ({ answer, steps }) => {
      const arm = await after(last, steps.slice(0, -1));
      const request = async () => steps.at(-1)!(arm);

      expect(await refusedBy(request())).toEqual(refusal(answer));
    },
  );
}

/** What a GET returns, undefined for nothing, after these requests. */
type Fact = readonly [what: string, id: string, shown: Body | undefined, ...steps: Step[]];

/** Beside all resources up to this kind. */
export function itShows(last: Kind | undefined, facts: readonly Fact[]): void {
  it.each(facts.map(([what, id, shown, ...steps]) => ({ what, id, shown, steps })))(
    "shows $what",
    async ({ id, shown, steps }) => {
      const found = (await after(last, steps)).peek(id);

      if (shown === undefined) expect(found).toBeUndefined();
      else expect(found).toMatchObject(shown);
    },
  );
}
