import { join } from "node:path";

import { writeWhole } from "../../shared/files";
import { spoken } from "../../shared/progress";
import type { Result } from "./claim";

export interface MachineStep {
  readonly chapter: string;
  readonly machine: string;
  readonly step: string;
  readonly seconds: number;
  readonly ended: string;
}

export interface Report {
  /** When the first machine of this run was asked for, and on what. */
  readonly began: string;
  readonly host: string;
  readonly results: readonly Result[];
  /** How long a machine's own log says that each of its steps took. */
  readonly steps: readonly MachineStep[];
}

const cell = (text: string): string =>
  text.replaceAll("|", "\\|").replaceAll("\n", " ").slice(0, 300);

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.map(cell).join(" | ")} |`)
    .join("\n");

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
      table(
        ["claim", "", "time", "note"],
        results
          .filter((one) => one.chapter === chapter)
          .map(({ sentence, outcome, seconds, note = "" }) => [
            sentence,
            outcome,
            took(seconds),
            note,
          ]),
      ),
    ]),
    "## Steps on the machines",
    table(
      ["cluster", "machine", "step", "time"],
      steps.map(({ chapter, machine, step, seconds }) => [chapter, machine, step, took(seconds)]),
    ),
    "",
  ].join("\n\n");
}

/** `report.md` and `report.json`, whole or as they were. */
export function writeReport(folder: string, report: Report): void {
  writeWhole(join(folder, "report.md"), markdown(report));
  writeWhole(join(folder, "report.json"), `${JSON.stringify(report, undefined, 2)}\n`);
}

/** Steps that have succeeded, from a machine's log. */
export const stepsIn = (log: string): Omit<MachineStep, "chapter" | "machine">[] =>
  [...log.matchAll(/^(\S+) ((?:first boot|bootstrap): .+): done after (\d+) s$/gm)].map(
    ([, ended = "", step = "", seconds]) => ({ step, seconds: Number(seconds), ended }),
  );
