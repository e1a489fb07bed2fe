import { setTimeout as sleep } from "node:timers/promises";

import type { Breakpoint, Fault, Stage } from "../../../local-azure/arm/faults";
import type { CommandResult, Life, Victim } from "../life";
import type { Scenario } from "./scenarios";

/** A process is killed when a request has come so far. */
export interface Kill {
  readonly kill: Victim;
  readonly at: Breakpoint;
}

/**
 * A process is killed in one command after another, each time a request later, until one ends. What
 * was asked side by side and not recorded is asked anew, so that at the same request it might have
 * no end.
 */
export interface KillAgain {
  readonly killAgain: Victim;
  /** At which request of the first command, counted from 1. */
  readonly from: number;
  readonly stage: Stage;
}

export interface FaultAt {
  readonly fault: Fault;
  /** What the message has to have when the run fails. */
  readonly says: readonly RegExp[];
  /** The same of what the program says in a hook. */
  readonly explains: readonly RegExp[];
}

/** Azure goes wrong at each of these, in as many runs as that takes. */
export interface AzureFaults {
  readonly faults: readonly FaultAt[];
  /** Whether the first run has to succeed, since azure-native asks again. */
  readonly mustEndWell: boolean;
}

/** The cluster is not as the state has it when the change comes. */
export interface UnhealthyCluster {
  readonly setUp: (life: Life) => Promise<void>;
  /** What a refusal has to say, which writes nothing to Azure. */
  readonly says: readonly RegExp[];
  /** Whether the change may succeed in place of being refused. */
  readonly mayGoOn: boolean;
  /** Whether it must. */
  readonly mustGoOn?: boolean;
  /** Makes an end of it, by what the message says. */
  readonly repair: (life: Life, scenario: Scenario) => Promise<void>;
}

export type Disturbance = Kill | KillAgain | AzureFaults | UnhealthyCluster;

export interface Disturbed {
  /** Whether what was to go wrong did. */
  readonly happened: boolean;
  /** How often, where it is more than once. */
  readonly times?: number;
  readonly flaws: readonly string[];
  /** What the run said that failed. */
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
  if ("killAgain" in disturbance) return killAgain(life, scenario, disturbance);
  if ("faults" in disturbance) return goWrong(life, scenario, disturbance);
  return changeUnhealthy(life, scenario, disturbance);
}

async function kill(life: Life, scenario: Scenario, { kill, at }: Kill): Promise<Disturbed> {
  await life.setBreakpoint(at);
  const command = life.command(scenario.operation, scenario.settings);
  const held = life.breakpointReached().then(() => true);
  const isHeld = await Promise.race([held, command.then(() => false)]).catch(() => false);
  const happened = isHeld && life.kill(kill);
  // A program has ended by itself when the engine deletes what was replaced.
  const flaws = isHeld && !happened && kill !== "program" ? [`no process to kill: ${kill}`] : [];
  if (!happened || kill !== "provider") await life.clearBreakpoint();
  await held.catch(() => false);
  const ended = await Promise.race([command, sleep(endsWithin, undefined, { ref: false })]);
  if (ended === undefined) {
    flaws.push(`the run had not ended ${endsWithin / 1000} s after its ${kill} was killed`);
    life.kill("engine");
  }
  const { succeeded, text } = ended ?? (await command);
  return { happened, flaws, ...(!succeeded && { said: text }) };
}

async function killAgain(
  life: Life,
  scenario: Scenario,
  { killAgain: victim, from, stage }: KillAgain,
): Promise<Disturbed> {
  const flaws: string[] = [];
  for (let times = 0; ; times++) {
    await life.begin();
    const at = { nth: from + times, stage, drop: isLost(victim, stage) };
    const one = await kill(life, scenario, { kill: victim, at });
    flaws.push(...one.flaws);
    if (!one.happened) return { ...one, happened: times > 0, times, flaws };
  }
}

/** With the engine goes its plugin, and with that what was not at Azure yet. */
export const isLost = (victim: Victim, stage: Stage): boolean =>
  victim === "engine" && stage === "arrived";

async function goWrong(
  life: Life,
  { operation, settings }: Scenario,
  { faults, mustEndWell }: AzureFaults,
): Promise<Disturbed> {
  for (const { fault } of faults) await life.fault(fault);
  const flaws: string[] = [];
  const met = new Set<number>();
  let said: string | undefined;
  for (let isOver = false; !isOver;) {
    const ended = await life.command(operation, settings);
    const now = (await life.metFaults()).filter((index) => !met.has(index));
    now.forEach((index) => met.add(index));
    const at = now.map((index) => faults[index]!);
    // What was asked again, and succeeded then, is what is hoped for.
    const { flaws: wrong, said: last } = judged(
      ended,
      at.flatMap(({ says, explains }) => [...says, ...(life.hasHooks() ? explains : [])]),
    );
    flaws.push(...wrong);
    said ??= last;
    if (!ended.succeeded && mustEndWell) {
      const where = at.map(({ fault }) => `${fault.method} ${fault.id}`).join(", ");
      flaws.push(`the run failed, with errors that azure-native repeats: ${where}`);
    }
    isOver = ended.succeeded || now.length === 0;
  }
  await life.clearFaults();
  return { happened: met.size > 0, times: met.size, flaws, ...(said !== undefined && { said }) };
}

async function changeUnhealthy(
  life: Life,
  scenario: Scenario,
  unhealthy: UnhealthyCluster,
): Promise<Disturbed> {
  await unhealthy.setUp(life);
  const before = life.requests().length;
  const ended = await life.command(scenario.operation, scenario.settings);
  const written = life
    .requests()
    .slice(before)
    .filter(({ method }) => writes.has(method));
  await unhealthy.repair(life, scenario);
  if (ended.succeeded) {
    const wrong = unhealthy.mayGoOn ? [] : ["the change went on, and should have been refused"];
    return { happened: true, flaws: wrong };
  }
  const { flaws, said } = judged(ended, unhealthy.says);
  const wrong = [
    ...(unhealthy.mustGoOn ? ["the change was refused, and should have succeeded"] : flaws),
    ...written.map(({ method, id }) => `it was refused, and wrote ${method} ${id}`),
  ];
  return { happened: true, flaws: wrong, said };
}

function judged(
  { succeeded, text }: CommandResult,
  says: readonly RegExp[],
): Omit<Disturbed, "happened"> {
  if (succeeded) return { flaws: [] };
  const missing = says.filter((words) => !words.test(text));
  return { flaws: missing.map((words) => `the message lacks ${words}`), said: text };
}
