import type { Measurement } from "./lab-task";

interface Column {
  readonly title: string;
  /** In the CSV. */
  readonly name: string;
  value(one: Measurement): string;
}

const seconds = (value: number): string => (value < 1 ? value.toFixed(3) : value.toFixed(2));

/** What is measured, in the order of the table. */
const columns: readonly Column[] = [
  { title: "mode", name: "mode", value: ({ mode }) => mode },
  { title: "Services", name: "services", value: ({ services }) => `${services}` },
  { title: "rules", name: "rules", value: ({ rules }) => `${rules}` },
  { title: "chains", name: "chains", value: ({ chains }) => `${chains}` },
  { title: "sets and maps", name: "sets", value: ({ sets }) => `${sets ?? 0}` },
  { title: "their members", name: "members", value: ({ members }) => `${members ?? 0}` },
  {
    title: "first sync, s",
    name: "first_sync_seconds",
    value: ({ firstSyncSeconds }) => seconds(firstSyncSeconds),
  },
  {
    title: "its CPU, s",
    name: "first_sync_cpu_seconds",
    value: ({ firstCpuSeconds }) => seconds(firstCpuSeconds),
  },
  {
    title: "change in force, s",
    name: "change_seconds",
    value: ({ changeSeconds }) => seconds(changeSeconds),
  },
  {
    title: "worst, s",
    name: "worst_change_seconds",
    value: ({ worstChangeSeconds }) => seconds(worstChangeSeconds),
  },
  {
    title: "its CPU, s",
    name: "change_cpu_seconds",
    value: ({ changeCpuSeconds }) => seconds(changeCpuSeconds),
  },
];

export const csvOf = (all: readonly Measurement[]): string =>
  [columns.map(({ name }) => name), ...all.map((one) => columns.map(({ value }) => value(one)))]
    .map((cells) => `${cells.join(",")}\n`)
    .join("");

/** Rows with cells of equal width, which read well on a terminal and are a table in Markdown. */
export function tableOf(all: readonly Measurement[]): string {
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
