import type { ResourceManager } from "../../../arm/resource-manager";
import { Body } from "../../../arm/resources/resource";
import type { PowerAction } from "../../../machines/machines";
import { createResources, newArm, refusedBy } from "./fixture";
import { Kind, valid, withChange } from "./valid-resources";

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
type Step = (arm: ResourceManager) => unknown;

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
