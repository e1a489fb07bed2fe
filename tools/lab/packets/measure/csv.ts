import { UserError } from "../../../shared/user-error";
import type { Mode } from "../cluster/proxy";
import type { Measurement } from "./lab-task";
import type { Measured } from "./page";

/** The figures of a measurement by their columns. */
const columns = {
  services: "services",
  endpoints: "endpoints",
  rules: "rules",
  endpointRules: "endpoint_rules",
  chains: "chains",
  sets: "sets",
  members: "members",
  destinations: "destinations",
  firstSyncSeconds: "first_sync_seconds",
  firstCpuSeconds: "first_sync_cpu_seconds",
  changeSeconds: "change_seconds",
  worstChangeSeconds: "worst_change_seconds",
  changeCpuSeconds: "change_cpu_seconds",
} as const satisfies Record<Exclude<keyof Measurement, "mode">, string>;

const figures = Object.keys(columns) as (keyof typeof columns)[];

const head = ["mode", ...Object.values(columns)].join(",");

/** A line for each measurement, below comments that say on which machine. */
export const csvOf = ({ machine, all }: Measured): string =>
  [
    ...machine.map((line) => `# ${line}`),
    head,
    ...all.map((one) => [one.mode, ...figures.map((figure) => round(one[figure] ?? 0))].join(",")),
  ]
    .map((line) => `${line}\n`)
    .join("");

const round = (value: number): number => Math.round(value * 1000) / 1000;

/** What `csvOf` wrote. */
export function measuredIn(file: string, text: string): Measured {
  const lines = text.trimEnd().split("\n");
  const first = lines.findIndex((line) => !line.startsWith("#"));
  if (lines[first] !== head) {
    throw new UserError(
      `${file}: expected the columns ${head}, got ${lines[first]}; measure anew, or delete it`,
    );
  }
  return {
    machine: lines.slice(0, first).map((line) => line.slice(2)),
    all: lines.slice(first + 1).map((line) => {
      const [mode, ...cells] = line.split(",");
      const values = Object.fromEntries(figures.map((figure, n) => [figure, Number(cells[n])]));
      return { mode: mode as Mode, ...values } as unknown as Measurement;
    }),
  };
}
