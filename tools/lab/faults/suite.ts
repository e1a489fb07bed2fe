import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { createHash } from "node:crypto";

import { lockFolder } from "../../local-azure/rehearsal/state-folder";
import { prepareBinaries } from "../../programs/engine";
import { clusterTools } from "../../programs/tools";
import { type Progress, spoken } from "../../shared/progress";
import { Interrupted, UserError } from "../../shared/user-error";
import { type Asked, type Case, casesOf, inOrder, nameOf } from "./cases/cases";
import { Findings, summary } from "./report";
import { readsIn, type Scenario, scenarios, writesIn } from "./cases/scenarios";
import { flaws, type Identity, identityOf, type Result, tryOut } from "./trial";
import { checkout } from "../../shared/checkout";
import { writeWhole } from "../../shared/files";
import { copyFolder, Life } from "./life";

/**
 * A place where one case after another begins from the same: nothing, or a ready cluster that was
 * made once.
 *
 * Ports and paths of a state folder are among what its stack is made from, so that a ready cluster
 * is put back where it was made, and each place has its own.
 */
class Ground {
  readonly life: (stack: string) => Life;

  constructor(
    private readonly folder: string,
    binaries: string,
    signal: AbortSignal,
  ) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.life = (stack) => new Life(join(folder, "state"), stack, binaries, signal);
  }

  /** Makes everything as it is before a scenario. */
  async prepare(scenario: Scenario): Promise<{ life: Life; before: Identity }> {
    const { stack, before } = scenario;
    const life = this.life(stack);
    await life.remove();
    if (before === undefined) return { life, before: {} };
    const ready = join(this.folder, `ready-${stack}`);
    const identityFile = `${ready}.json`;
    if (!existsSync(identityFile)) {
      await must(life, "up", before);
      const { outputs } = await life.stackState(before);
      const identity = await identityOf(life, String(outputs["kubeconfig"]));
      await life.end();
      await copyFolder(life.state, ready);
      writeWhole(identityFile, JSON.stringify(identity));
    } else {
      await copyFolder(ready, life.state);
    }
    return { life, before: JSON.parse(readFileSync(identityFile, "utf8")) as Identity };
  }

  /** Runs a scenario in which nothing goes wrong, and returns what it asked. */
  async goodRun(scenario: Scenario): Promise<Asked> {
    const { life, before } = await this.prepare(scenario);
    const [requests, operations] = [life.requests().length, life.operations().length];
    await must(life, scenario.operation, scenario.settings);
    const azure = life.requests().slice(requests);
    const asked = {
      writes: writesIn(azure, life.operations().slice(operations)),
      reads: readsIn(azure),
    };
    const wrong = await flaws(life, scenario, before);
    await life.remove();
    if (wrong.length === 0) return asked;
    throw new UserError(
      `${scenario.name} fails even when nothing goes wrong:\n${wrong.join("\n")}`,
    );
  }
}

async function must(
  life: Life,
  operation: Scenario["operation"],
  settings: Scenario["settings"],
): Promise<void> {
  const { succeeded, text } = await life.command(operation, settings);
  if (!succeeded) {
    throw new UserError(
      `nothing was to go wrong yet, and pulumi ${operation} failed:\n…${text.slice(-2000)}`,
    );
  }
}

/** What a report is about: another program, local Azure or form of the report ends it. */
function programStamp(): string {
  const hash = createHash("sha256");
  const parts = [
    "components",
    "cloud-init",
    "tools/local-azure",
    "index.ts",
    "main.cjs",
    "package-lock.json",
    "tools/lab/faults/report.ts",
    "tools/recover",
    "tools/shared/columns.ts",
  ];
  for (const part of parts) {
    for (const file of filesIn(join(checkout, part))) hash.update(readFileSync(file));
  }
  return hash.digest("hex").slice(0, 12);
}

function filesIn(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .sort()
    .filter((name) => name !== "tests")
    .flatMap((name) => filesIn(join(path, name)));
}

/** What good runs asked, kept in a folder. */
async function askedOf(
  folder: string,
  scenario: Scenario,
  run: () => Promise<Asked>,
): Promise<Asked> {
  const file = join(folder, `asked-${scenario.key}.json`);
  if (!existsSync(file)) writeWhole(file, JSON.stringify(await run(), undefined, 1));
  return JSON.parse(readFileSync(file, "utf8")) as Asked;
}

/** Forgets ready clusters and good runs: they were of another program. */
function forgetGround(folder: string): void {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    if (/^(asked-|place-)/.test(name)) rmSync(join(folder, name), { recursive: true, force: true });
  }
}

export interface FaultsOptions {
  /** Folder of the report, of ready clusters, and of what is under way. */
  readonly folder: string;
  /** Keys of the scenarios that are tried; without any, all. */
  readonly keys: readonly string[];
  /** Regular expression over `scenario: kind: title`. */
  readonly only?: string;
  /** Tries so many, of as many classes as it can. */
  readonly sample?: number;
  readonly jobs: number;
  /** Forgets what an earlier run has found out about these cases. */
  readonly fresh: boolean;
  /** Names the cases, and tries none. */
  readonly list: boolean;
}

const bad = ({ ending }: Result): boolean => ending === "flawed" || ending === "stuck";

/**
 * Tries what can go wrong, one case after another, writes the report, and returns the exit code.
 */
export async function testFaults(
  { folder, keys, only = "", sample, jobs, fresh, list }: FaultsOptions,
  progress: Progress,
  signal: AbortSignal,
): Promise<number> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const release = lockFolder(folder);
  try {
    const binaries = await prepareBinaries({ progress, signal }, clusterTools);
    const record = new Findings(folder, programStamp());
    if (record.isNew || (fresh && only === "")) forgetGround(folder);
    const grounds = Array.from(
      { length: jobs },
      (_, index) => new Ground(join(folder, `place-${index + 1}`), binaries, signal),
    );
    const wanted = scenarios.filter(({ key }) => keys.length === 0 || keys.includes(key));
    const all = await everyCase(wanted, { folder, ground: grounds[0]!, progress, signal });
    record.setCases(all);
    const chosen = inOrder(matching(all, only));
    if (fresh) record.forget(new Set(chosen.map(nameOf)));
    const open = chosen.filter((one) => !record.has(nameOf(one)));
    const cases = open.slice(0, sample);
    if (list) {
      for (const one of cases) progress.line(nameOf(one));
      progress.line(`${cases.length} cases to try, of ${all.length}`);
      return 0;
    }
    progress.line(`${cases.length} cases to try, of ${all.length}, ${jobs} at a time`);
    await tryAll(cases, grounds, { record, progress, signal });
    const results = record.report.results;
    progress.line(`\n${summary(results)}: ${join(folder, "report.md")}`);
    return results.some(bad) ? 1 : 0;
  } finally {
    release();
  }
}

/** What can go wrong in these scenarios; what their good runs ask is asked once. */
async function everyCase(
  chosen: readonly Scenario[],
  {
    folder,
    ground,
    progress,
    signal,
  }: {
    readonly folder: string;
    readonly ground: Ground;
    readonly progress: Progress;
    readonly signal: AbortSignal;
  },
): Promise<Case[]> {
  const all: Case[] = [];
  for (const scenario of chosen) {
    const asked = await askedOf(folder, scenario, () =>
      progress.during(`a good run of ${scenario.name}`, () => ground.goodRun(scenario)),
    ).catch((error: unknown) => {
      throw signal.aborted ? new Interrupted() : error;
    });
    all.push(...casesOf(scenario, asked));
  }
  return all;
}

function matching(all: readonly Case[], only: string): Case[] {
  let pattern: RegExp;
  try {
    pattern = new RegExp(only, "i");
  } catch {
    throw new UserError(`--only is ${only}, which is no regular expression`, 2);
  }
  const chosen = all.filter((one) => pattern.test(nameOf(one)));
  if (chosen.length > 0) return chosen;
  throw new UserError(`no case matches ${only}; npm run test:faults -- --list names them all`, 2);
}

/** Each place takes the next case until none is left. */
async function tryAll(
  cases: readonly Case[],
  grounds: readonly Ground[],
  {
    record,
    progress,
    signal,
  }: { readonly record: Findings; readonly progress: Progress; readonly signal: AbortSignal },
): Promise<void> {
  const left = [...cases];
  const work = async (ground: Ground): Promise<void> => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) {
      const { life, before } = await ground.prepare(one.scenario);
      try {
        const result = await tryOut(one, life, before);
        record.add(result);
        progress.line(lineOf(result, cases.length - left.length, cases.length));
      } finally {
        await life.remove();
      }
    }
  };
  const ended = await Promise.allSettled(grounds.map(work));
  if (signal.aborted) throw new Interrupted();
  for (const one of ended) if (one.status === "rejected") throw one.reason as Error;
}

function lineOf(result: Result, number: number, all: number): string {
  const what = `${number}/${all} ${result.ending.toUpperCase()} ${nameOf(result)}`;
  const flaws = result.flaws.map((flaw) => `\n    ${flaw.split("\n")[0]}`).join("");
  return `${what} (${spoken(result.seconds * 1000)})${flaws}`;
}
