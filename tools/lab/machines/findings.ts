import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";

import { markdownTable } from "../../shared/columns";
import { writeWhole } from "../../shared/files";
import { spoken } from "../../shared/progress";
import type { Chapter, Claim, Result } from "./claim";
import type { RealCluster } from "./real-cluster";

interface MachineStep {
  readonly chapter: string;
  readonly machine: string;
  readonly step: string;
  readonly seconds: number;
  readonly ended: string;
}

interface Report {
  /** When the first machine of this run was asked for, and on what. */
  readonly began: string;
  readonly host: string;
  readonly results: readonly Result[];
  /** How long a machine's own log says that each of its steps took. */
  readonly steps: readonly MachineStep[];
}

/** How many there are of each outcome, as a sentence. */
export function summary(results: readonly Result[]): string {
  const outcomes = ["passed", "failed", "not run", "not covered"] as const;
  return outcomes
    .map((outcome) => `${results.filter((one) => one.outcome === outcome).length} ${outcome}`)
    .join(", ");
}

export function markdown({ began, host, results, steps }: Report): string {
  const chapters = [...new Set(results.map(({ chapter }) => chapter))];
  const took = (seconds: number | undefined): string =>
    seconds === undefined ? "" : spoken(seconds * 1000);
  return [
    "# Real machines: what was seen",
    `${summary(results)}. Begun ${began}, on ${host}.`,
    ...chapters.flatMap((chapter) => [
      `## ${chapter}`,
      markdownTable(
        ["claim", "", "time", "note"],
        results
          .filter((one) => one.chapter === chapter)
          .map(({ sentence, outcome, seconds, note = "" }) => [
            sentence,
            outcome,
            took(seconds),
            note.slice(0, 300),
          ]),
      ),
    ]),
    "## Steps on the machines",
    markdownTable(
      ["cluster", "machine", "step", "time"],
      steps.map(({ chapter, machine, step, seconds }) => [chapter, machine, step, took(seconds)]),
    ),
    "",
  ].join("\n\n");
}

/** Steps that have succeeded, from a machine's log. */
export const stepsIn = (log: string): Omit<MachineStep, "chapter" | "machine">[] =>
  [...log.matchAll(/^(\S+) ((?:first boot|bootstrap): .+): done after (\d+) s$/gm)].map(
    ([, ended = "", step = "", seconds]) => ({ step, seconds: Number(seconds), ended }),
  );

/**
 * The results so far; an interrupted run is gone on with, and asks again only what was not
 * true.
 */
export class Findings {
  report: Report;
  private readonly file: string;

  constructor(private readonly folder: string) {
    this.file = join(folder, "unfinished");
    this.report =
      existsSync(this.file) && existsSync(join(folder, "report.json"))
        ? (JSON.parse(readFileSync(join(folder, "report.json"), "utf8")) as Report)
        : {
            began: new Date().toISOString(),
            host: `${availableParallelism()} cores with ${Math.round(totalmem() / 2 ** 30)} GiB`,
            results: [],
            steps: [],
          };
  }

  hasPassed = (chapter: Chapter, claim: Claim): boolean =>
    this.of(chapter).some(
      ({ sentence, outcome }) => sentence === claim.sentence && outcome === "passed",
    );

  /** Whether all of it was asked and is true. */
  isWell = (chapter: Chapter): boolean =>
    chapter.claims.every((claim) => this.hasPassed(chapter, claim));

  forget({ name }: Chapter): void {
    this.report = {
      ...this.report,
      results: this.report.results.filter(({ chapter }) => chapter !== name),
    };
  }

  /** A result that replaces another takes its place. */
  add(result: Result): void {
    const isIt = ({ chapter, sentence }: Result): boolean =>
      chapter === result.chapter && sentence === result.sentence;
    const { results } = this.report;
    this.write({
      ...this.report,
      results: results.some(isIt)
        ? results.map((one) => (isIt(one) ? result : one))
        : [...results, result],
    });
  }

  addNotCovered(notCovered: Readonly<Record<string, string>>): void {
    for (const [sentence, note] of Object.entries(notCovered)) {
      this.add({ chapter: "Not covered", sentence, outcome: "not covered", note });
    }
  }

  /** What the machines' logs say of their steps. */
  async addSteps({ name: chapter }: Chapter, cluster: RealCluster): Promise<void> {
    const steps = this.report.steps.filter((one) => one.chapter !== chapter);
    for (const machine of await cluster.names().catch(() => [])) {
      const log = await cluster.inMachine(machine, "cat /var/log/zoned.log").catch(() => "");
      steps.push(...stepsIn(log).map((step) => ({ chapter, machine, ...step })));
    }
    this.write({ ...this.report, steps });
  }

  close(): void {
    rmSync(this.file, { force: true });
  }

  private of = ({ name }: Chapter): Result[] =>
    this.report.results.filter(({ chapter }) => chapter === name);

  private write(report: Report): void {
    this.report = report;
    writeWhole(join(this.folder, "report.md"), markdown(report));
    writeWhole(join(this.folder, "report.json"), `${JSON.stringify(report, undefined, 2)}\n`);
    writeFileSync(this.file, "");
  }
}
