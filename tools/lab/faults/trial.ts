import type { Case } from "./cases/case";
import { disturb } from "./cases/disturbances";
import { flaws, type Identity } from "./invariants";
import type { Life } from "./life";
import type { Scenario } from "./cases/scenarios";

export const endings = ["converged", "flawed", "stuck", "not reached"] as const;

export interface Result {
  readonly scenario: string;
  readonly kind: string;
  readonly what: string;
  readonly title: string;
  /**
   * converged: everything is as it has to be. flawed: it ended, and something is not. stuck: no
   * command succeeds. not reached: what was to go wrong did not come to pass.
   */
  readonly ending: (typeof endings)[number];
  /** How many commands it took until one succeeded, after the one in which it went wrong. */
  readonly commands: number;
  /** How often it went wrong, where that is more than once. */
  readonly times?: number;
  readonly seconds: number;
  readonly flaws: readonly string[];
  /** The end of what the engine said when it first failed. */
  readonly said?: string;
}

const mostCommands = 3;
const keptWords = 2_000;

/**
 * Lets one thing go wrong, brings it to its end by the documented commands, and looks at all of it.
 */
export async function tryOut(one: Case, life: Life, before: Identity): Promise<Result> {
  const { scenario, kind, what, title, disturbance } = one;
  const since = Date.now();
  const { happened, times, said, flaws } = await disturb(life, scenario, disturbance);
  const after = await conclude(life, scenario, before);
  const all = [...flaws, ...after.flaws];
  const ending = after.isStuck
    ? "stuck"
    : all.length > 0
      ? "flawed"
      : happened
        ? "converged"
        : "not reached";
  return {
    ...{ scenario: scenario.key, kind, what, title, ending },
    commands: after.commands,
    seconds: Math.round((Date.now() - since) / 1000),
    flaws: all,
    ...(times !== undefined && { times }),
    ...(said !== undefined && { said: said.slice(-keptWords) }),
  };
}

/**
 * Converges by `npm start` or `npm stop` alone, then looks whether everything is as it has to be.
 */
export async function conclude(
  life: Life,
  scenario: Scenario,
  before: Identity,
): Promise<{ readonly commands: number; readonly isStuck: boolean; readonly flaws: string[] }> {
  let last = "";
  for (let commands = 1; commands <= mostCommands; commands++) {
    const { succeeded, text } = await life.command(scenario.operation, scenario.settings);
    if (succeeded) return { commands, isStuck: false, flaws: await flaws(life, scenario, before) };
    last = text;
  }
  const why = `${mostCommands} commands did not help: ${last.slice(-keptWords)}`;
  const left = (await life.leftovers()).map(({ pid, role }) => `left running: ${role} (${pid})`);
  return { commands: mostCommands, isStuck: true, flaws: [why, ...left] };
}
