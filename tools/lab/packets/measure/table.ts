import type { Measurement } from "./lab-task";

interface Column {
  readonly title: string;
  value(one: Measurement): string;
}

const seconds = (value: number): string => (value < 1 ? value.toFixed(3) : value.toFixed(2));

/** What is counted, in the order of the table. */
const counted: readonly Column[] = [
  { title: "mode", value: ({ mode }) => mode },
  { title: "Services", value: ({ services }) => `${services}` },
  { title: "rules", value: ({ rules }) => `${rules}` },
  { title: "chains", value: ({ chains }) => `${chains}` },
  { title: "sets and maps", value: ({ sets }) => `${sets ?? 0}` },
  { title: "their members", value: ({ members }) => `${members ?? 0}` },
  { title: "IPVS destinations", value: ({ destinations }) => `${destinations ?? 0}` },
];

/** What is timed, all in seconds. */
const timed: readonly { readonly title: string; value(one: Measurement): number }[] = [
  { title: "first sync", value: ({ firstSyncSeconds }) => firstSyncSeconds },
  { title: "its CPU", value: ({ firstCpuSeconds }) => firstCpuSeconds },
  { title: "change in force", value: ({ changeSeconds }) => changeSeconds },
  { title: "worst", value: ({ worstChangeSeconds }) => worstChangeSeconds },
  { title: "its CPU", value: ({ changeCpuSeconds }) => changeCpuSeconds },
];

export const tableOf = (all: readonly Measurement[]): string =>
  markdown(all, [
    ...counted,
    ...timed.map(({ title, value }) => ({
      title: `${title}, s`,
      value: (one: Measurement) => seconds(value(one)),
    })),
  ]);

/** With each time as a multiple of what iptables takes for as many Services. */
export function ratiosOf(all: readonly Measurement[]): string {
  const ratio = (one: Measurement, value: (one: Measurement) => number): string => {
    const base = all.find(({ mode, services }) => mode === "iptables" && services === one.services);
    return base === undefined ? "–" : (value(one) / value(base)).toFixed(2);
  };
  return markdown(all, [
    ...counted,
    ...timed.map(({ title, value }) => ({
      title: `${title}, ×`,
      value: (one: Measurement) => ratio(one, value),
    })),
  ]);
}

/** Rows with cells of equal width, which read well on a terminal and are a table in Markdown. */
function markdown(all: readonly Measurement[], columns: readonly Column[]): string {
  const rows = [
    columns.map(({ title }) => title),
    ...all.map((one) => columns.map(({ value }) => value(one))),
  ];
  const widths = columns.map((_, index) =>
    Math.max(...rows.map((cells) => cells[index]?.length ?? 0)),
  );
  const [head = "", ...body] = rows.map(
    (cells) => `| ${cells.map((cell, index) => pad(cell, index, widths)).join(" | ")} |`,
  );
  const line = `| ${widths.map((width, index) => (index === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [head, line, ...body].join("\n");
}

const pad = (cell: string, index: number, widths: readonly number[]): string =>
  index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0);
