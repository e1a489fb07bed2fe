import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";

import { notCovered } from "./chapters";
import type { Chapter, Claim, Result } from "./claim";
import type { RealCluster } from "./real-cluster";
import { type Report, stepsIn, writeReport } from "./report";

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

  addNotCovered(): void {
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
    writeReport(this.folder, report);
    writeFileSync(this.file, "");
  }
}
