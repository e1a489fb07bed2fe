import { cpus, totalmem } from "node:os";

import { spoken } from "../../shared/progress";
import type { Growth } from "./growth";
import { assumed } from "./paced-machines";
import type { Previews } from "./previews";
import type { WallTime } from "./wall-time";

/** How much a figure may be of what it is held against. */
const most = { wall: 1.1, preview: 1.25, unchanged: 1.3 } as const;

export interface Report {
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

export function report(
  walls: readonly WallTime[],
  previews: Previews,
  growth: readonly Growth[],
): Report {
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
    table(
      ["ratio", "is", "at most"],
      ratios.map(({ what, is, most }) => [what, is.toFixed(2), most.toFixed(2)]),
    ),
    ...walls.map(chainText),
    table(
      ["preview", "seconds, median of 3"],
      [
        ["local, nothing there yet", previews.preview.toFixed(1)],
        ["a bare program with the same resources", previews.bare.toFixed(1)],
        ["local, nothing to change", previews.unchangedPreview.toFixed(1)],
        ["`up --skip-preview`, nothing to change", previews.unchangedUp.toFixed(1)],
      ],
    ),
    table(
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
    table(
      ["longest chain", "seconds"],
      chain.map(({ name, seconds }) => [name, String(seconds)]),
    ),
  ].join("\n\n");
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
