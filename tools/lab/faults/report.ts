import { existsSync, readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";

import { markdownTable } from "../../shared/columns";
import { writeWhole } from "../../shared/files";
import { spoken } from "../../shared/progress";
import { type Case, classOf, nameOf } from "./cases/cases";
import { endings, type Result } from "./trial";

export interface Report {
  readonly began: string;
  readonly host: string;
  /** Of the program and the local Azure that this was found out about. */
  readonly program: string;
  /** All cases of the scenarios that were asked for so far. */
  readonly cases: readonly KnownCase[];
  readonly results: readonly Result[];
}

type KnownCase = Pick<Result, "scenario" | "kind" | "what" | "title">;

/** What was found out so far, written after each case: an interrupted run is gone on with. */
export class Findings {
  report: Report;
  /** Whether nothing that is kept is about this program. */
  readonly isNew: boolean;

  constructor(
    private readonly folder: string,
    program: string,
  ) {
    const file = join(folder, "report.json");
    const kept = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Report) : undefined;
    this.isNew = kept?.program !== program;
    this.report =
      kept !== undefined && !this.isNew
        ? kept
        : {
            began: new Date().toISOString(),
            host: `${availableParallelism()} cores with ${Math.round(totalmem() / 2 ** 30)} GiB`,
            program,
            cases: [],
            results: [],
          };
  }

  has = (name: string): boolean => this.report.results.some((one) => nameOf(one) === name);

  forget(names: ReadonlySet<string>): void {
    const results = this.report.results.filter((one) => !names.has(nameOf(one)));
    this.write({ ...this.report, results });
  }

  /** All cases of their scenarios; results of cases that these no longer have are dropped. */
  setCases(all: readonly Case[]): void {
    const cases = all.map(({ scenario, kind, what, title }) => ({
      ...{ scenario: scenario.key, kind, what, title },
    }));
    const scenarios = new Set(cases.map(({ scenario }) => scenario));
    const names = new Set(cases.map(nameOf));
    const { cases: before, results } = this.report;
    this.write({
      ...this.report,
      cases: [...before.filter(({ scenario }) => !scenarios.has(scenario)), ...cases],
      results: results.filter((one) => !scenarios.has(one.scenario) || names.has(nameOf(one))),
    });
  }

  add(result: Result): void {
    this.write({ ...this.report, results: [...this.report.results, result] });
  }

  private write(report: Report): void {
    this.report = report;
    writeWhole(join(this.folder, "report.md"), markdown(report));
    writeWhole(join(this.folder, "report.json"), `${JSON.stringify(report, undefined, 2)}\n`);
  }
}

/** How many ended how, as a sentence. */
export const summary = (results: readonly Result[]): string =>
  endings
    .map((ending) => [results.filter((one) => one.ending === ending).length, ending] as const)
    .filter(([count, ending]) => count > 0 || ending === "converged")
    .map(([count, ending]) => `${count} ${ending}`)
    .join(", ");

const classesOf = (all: readonly KnownCase[]): number => new Set(all.map(classOf)).size;

export function markdown({ began, host, program, cases, results }: Report): string {
  const scenarios = [...new Set(results.map(({ scenario }) => scenario))];
  const bad = results.filter(({ ending }) => ending === "flawed" || ending === "stuck");
  return [
    "# Faults: what was injected, and how it ended",
    `${results.length} of ${cases.length} cases tried, in ` +
      `${classesOf(results)} of ${classesOf(cases)} classes ` +
      `(scenario, kind, verb and type): ${summary(results)}. ` +
      `Begun ${began}, on ${host}, with the program ${program}.`,
    ...scenarios.flatMap((scenario) => [
      `## ${scenario}`,
      markdownTable(
        ["kind", "cases", "injected", ...endings, "commands", "time"],
        kindsOf(scenario, cases, results),
      ),
    ]),
    "## Ended badly",
    ...(bad.length === 0 ? ["Nothing."] : [...grouped(bad)]),
    "",
  ].join("\n\n");
}

function kindsOf(
  scenario: string,
  cases: Report["cases"],
  results: readonly Result[],
): readonly string[][] {
  const isOwn = (one: KnownCase) => one.scenario === scenario;
  const own = results.filter(isOwn);
  return [...new Set(own.map(({ kind }) => kind))].sort().map((kind) => {
    const tried = own.filter((one) => one.kind === kind);
    const times = tried.map(({ seconds }) => seconds).sort((a, b) => a - b);
    const median = times[Math.floor(times.length / 2)] ?? 0;
    return [
      kind,
      `${cases.filter((one) => isOwn(one) && one.kind === kind).length}`,
      `${tried.reduce((sum, { times = 1 }) => sum + times, 0)}`,
      ...endings.map((ending) => `${tried.filter((one) => one.ending === ending).length || ""}`),
      `${Math.max(...tried.map(({ commands }) => commands))}`,
      `${spoken(median * 1000)}, at most ${spoken(times.at(-1)! * 1000)}`,
    ];
  });
}

/** Cases by what is not as it has to be, which usually has one cause. */
function grouped(bad: readonly Result[]): string[] {
  const groups = new Map<string, Result[]>();
  for (const one of bad) {
    const what = one.flaws.map(common).join("; ");
    groups.set(what, [...(groups.get(what) ?? []), one]);
  }
  return [...groups]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([what, ones]) =>
      [
        `### ${ones.length} times: ${what.slice(0, 500)}`,
        "",
        ...ones.map((one) => `- ${nameOf(one)} (${one.ending})`),
      ].join("\n"),
    );
}

/** Without what differs from run to run. */
const common = (flaw: string): string =>
  flaw
    .replaceAll(/\(process \d+\)|\(\d+\)/g, "")
    .replaceAll(/urn:pulumi:\S+::/g, "")
    .replaceAll(/\/subscriptions\/\S+\/(?=[^/\s]+)/g, "")
    .replaceAll(/\s+/g, " ")
    .trim();
