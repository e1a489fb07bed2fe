import { setTimeout as sleep } from "node:timers/promises";

import type { Breakpoint } from "../../local-azure/resource-manager/breakpoints";
import type { Fault } from "../../local-azure/resource-manager/faults";
import type { Life, Said, Victim } from "./life";
import type { Scenario } from "./scenarios";

/** A process is killed when a request has come so far. */
export interface Kill {
  readonly kill: Victim;
  readonly at: Breakpoint;
}

/** Azure goes wrong. */
export interface Wrong {
  readonly fault: Fault;
  /** What the message has to have when the run does not end well. */
  readonly says: readonly RegExp[];
}

/** The cluster is not as the state has it when the change comes. */
export interface Sick {
  readonly setUp: (life: Life) => Promise<void>;
  /** What a refusal has to say; without it, the change has to go well. */
  readonly refused?: readonly RegExp[];
  /** Makes an end of it, by what the message says. */
  readonly heal?: (life: Life) => Promise<void>;
}

export type Disturbance = Kill | Wrong | Sick;

export interface Disturbed {
  /** Whether what was to go wrong did. */
  readonly happened: boolean;
  readonly flaws: readonly string[];
  /** What the run said that did not end well. */
  readonly said?: string;
}

const endsWithin = 240_000;
const writes = new Set(["PUT", "DELETE", "SCRIPT"]);

/** Runs a scenario's command while that goes wrong; afterwards nothing goes wrong any more. */
export async function disturb(
  life: Life,
  scenario: Scenario,
  disturbance: Disturbance,
): Promise<Disturbed> {
  await life.begin();
  if ("kill" in disturbance) return kill(life, scenario, disturbance);
  if ("fault" in disturbance) return goWrong(life, scenario, disturbance);
  return changeSick(life, scenario, disturbance);
}

async function kill(life: Life, scenario: Scenario, { kill, at }: Kill): Promise<Disturbed> {
  await life.setBreakpoint(at);
  const command = life.command(scenario.operation, scenario.settings);
  const held = life.breakpointReached().then(() => true);
  const happened = await Promise.race([held, command.then(() => false)]).catch(() => false);
  const flaws: string[] = [];
  if (happened) {
    if (!life.kill(kill)) flaws.push(`no process to kill: ${kill}`);
  }
  if (!happened || kill !== "provider") await life.clearBreakpoint();
  await held.catch(() => false);
  const ended = await Promise.race([command, sleep(endsWithin, undefined, { ref: false })]);
  if (ended === undefined) {
    flaws.push(`the run had not ended ${endsWithin / 1000} s after its ${kill} was killed`);
    life.kill("engine");
  }
  const { isWell, text } = ended ?? (await command);
  return { happened, flaws, ...(!isWell && { said: text }) };
}

async function goWrong(
  life: Life,
  { operation, settings }: Scenario,
  { fault, says }: Wrong,
): Promise<Disturbed> {
  await life.fault(fault);
  const ended = await life.command(operation, settings);
  await life.clearFaults();
  // What was asked again, and went well then, is what is hoped for.
  return { happened: true, ...judged(ended, says) };
}

async function changeSick(
  life: Life,
  { operation, settings }: Scenario,
  { setUp, refused, heal }: Sick,
): Promise<Disturbed> {
  await setUp(life);
  const before = life.requests().length;
  const ended = await life.command(operation, settings);
  const written = life.requests().slice(before).filter(({ method }) => writes.has(method));
  const flaws =
    refused === undefined
      ? ended.isWell
        ? []
        : ["the change was refused, and should have gone well"]
      : ended.isWell
        ? ["the change went on, and should have been refused"]
        : [...judged(ended, refused).flaws, ...written.map(({ method, id }) => `wrote: ${method} ${id}`)];
  await heal?.(life);
  return { happened: true, flaws, ...(!ended.isWell && { said: ended.text }) };
}

function judged({ isWell, text }: Said, says: readonly RegExp[]): Omit<Disturbed, "happened"> {
  if (isWell) return { flaws: [] };
  const missing = says.filter((words) => !words.test(text));
  return { flaws: missing.map((words) => `the message lacks ${words}`), said: text };
}
