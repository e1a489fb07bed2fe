import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

import { checkout } from "../../shared/checkout";
import { writeWhole } from "../../shared/files";
import { UserError } from "../../shared/user-error";
import type { Asked } from "./cases/cases";
import { flaws, type Identity, identityOf } from "./invariants";
import { copyFolder, Life } from "./life";
import { readsIn, writesIn } from "./cases/requests";
import type { Scenario } from "./cases/scenarios";

/**
 * A place where one case after another begins from the same: nothing, or a ready cluster that was
 * made once.
 *
 * Ports and paths of a state folder are among what its stack is made from, so that a ready cluster
 * is put back where it was made, and each place has its own.
 */
export class Ground {
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
export function programStamp(): string {
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
export async function askedOf(
  folder: string,
  scenario: Scenario,
  run: () => Promise<Asked>,
): Promise<Asked> {
  const file = join(folder, `asked-${scenario.key}.json`);
  if (!existsSync(file)) writeWhole(file, JSON.stringify(await run(), undefined, 1));
  return JSON.parse(readFileSync(file, "utf8")) as Asked;
}

/** Forgets ready clusters and good runs: they were of another program. */
export function forgetGround(folder: string): void {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    if (/^(asked-|place-)/.test(name)) rmSync(join(folder, name), { recursive: true, force: true });
  }
}
