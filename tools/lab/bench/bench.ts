import { cpus, totalmem } from "node:os";

import { prepareBinaries } from "../../programs/engine";
import { markdownTable } from "../../shared/columns";
import { type Progress, spoken } from "../../shared/progress";
import { type Growth, growth, type WallTime, wallTime } from "./wall-time";
import type { Bench } from "./local-stack";
import { assumed } from "./paced-machines";
import { type Previews, previews } from "./previews";

/** Measures, prints a report in Markdown, and returns the exit code: 1 when a ratio is too high. */
export async function bench(progress: Progress, signal: AbortSignal): Promise<number> {
  const binaries = await prepareBinaries({ progress, signal });
  const step = progress.step("measuring", "20 min");
  const shared: Bench = { binaries, signal, log: (line) => progress.line(line) };
  const measure = async () => {
    const walls = [
      await wallTime(shared, "dev"),
      await wallTime(shared, "prod"),
      await wallTime(shared, "dev", "an image"),
      await wallTime(shared, "prod", "an image"),
    ];
    return report(walls, await previews(shared), await growth(shared));
  };
  const { text, missed } = await measure().finally(() => step.done(false));
  progress.line(`\n${text}\n`);
  for (const sentence of missed) progress.line(`too high: ${sentence}`);
  return missed.length === 0 ? 0 : 1;
}

/** How much a figure may be of what it is held against. */
const most = { wall: 1.1, preview: 1.25, unchanged: 1.3 } as const;

interface Report {
  /** Markdown. */
  readonly text: string;
  /** Sentences about ratios that are too high. */
  readonly missed: readonly string[];
}

interface Ratio {
  readonly what: string;
  readonly is: number;
  readonly most: number;
}

function report(walls: readonly WallTime[], previews: Previews, growth: readonly Growth[]): Report {
  const ratios: Ratio[] = [
    ...walls.map(({ stack, predicted, forced }) => ({
      what: `predicted \`up\` of ${stack} : Azure's longest chain`,
      is: predicted / forced,
      most: most.wall,
    })),
    {
      what: `preview of local, ${previews.resources} resources : a bare program with the same resources`,
      is: previews.preview / previews.bare,
      most: most.preview,
    },
    {
      what: "`up --skip-preview` without changes : preview without changes",
      is: previews.unchangedUp / previews.unchangedPreview,
      most: most.unchanged,
    },
    ...growth.slice(1).flatMap((larger, index) => linear(growth[index]!, larger)),
  ];
  const text = [
    `On ${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"}) with ${Math.round(totalmem() / 2 ** 30)} GiB.`,
    markdownTable(
      ["ratio", "is", "at most"],
      ratios.map(({ what, is, most }) => [what, is.toFixed(2), most.toFixed(2)]),
    ),
    ...walls.map(chainText),
    markdownTable(
      ["preview", "seconds, median of 3"],
      [
        ["local, nothing there yet", previews.preview.toFixed(1)],
        ["a bare program with the same resources", previews.bare.toFixed(1)],
        ["local, nothing to change", previews.unchangedPreview.toFixed(1)],
        ["`up --skip-preview`, nothing to change", previews.unchangedUp.toFixed(1)],
      ],
    ),
    markdownTable(
      ["machines", "resources", "seconds", "MiB at the peak"],
      growth.map((one) => [
        String(one.machines),
        String(one.resources),
        one.seconds.toFixed(1),
        String(one.mebibytes),
      ]),
    ),
  ].join("\n\n");
  const missed = ratios
    .filter(({ is, most }) => is > most)
    .map(
      ({ what, is, most }) => `${what} is ${is.toFixed(2)}, expected at most ${most.toFixed(2)}`,
    );
  return { text, missed };
}

function linear(smaller: Growth, larger: Growth): Ratio[] {
  const times = larger.machines / smaller.machines;
  const what = (measure: string): string =>
    `${measure} of a preview of ${larger.machines} machines : of ${smaller.machines}`;
  return [
    { what: what("time"), is: larger.seconds / smaller.seconds, most: times },
    { what: what("memory"), is: larger.mebibytes / smaller.mebibytes, most: times },
  ];
}

function chainText({ stack, chain, forced, predicted, simulated, own }: WallTime): string {
  const { firstBoot, imageBoot, kubeadmInit, controlPlaneJoin, workerJoin } = assumed;
  return [
    `First \`up\` of ${stack}: ${simulated.toFixed(0)} s at half of Azure's time and ${own.toFixed(0)} s of this machine's own, ` +
      `so ${spoken(predicted * 1000)} predicted; Azure's longest chain is ${spoken(forced * 1000)}. ` +
      `Assumed: first boot ${firstBoot} s (${imageBoot} s of an image), kubeadm init ${kubeadmInit} s, join ${controlPlaneJoin} s (control plane) and ${workerJoin} s (worker).`,
    markdownTable(
      ["longest chain", "seconds"],
      chain.map(({ name, seconds }) => [name, String(seconds)]),
    ),
  ].join("\n\n");
}
