import { Body } from "../../../arm/resources/resource";
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
