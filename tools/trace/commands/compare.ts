import { columns } from "../../shared/columns";
import { UserError } from "../../shared/user-error";
import { countNames, type Counts, countsOf } from "../model/dump";
import { readDumps } from "../read/read-dumps";

/** The options of `npm run compare`. */
export interface CompareWords {
  readonly json: boolean;
  readonly measure: boolean;
  readonly virtualMachine: boolean;
}

interface Row {
  readonly dump: string;
  readonly counts: Counts;
  readonly notes: readonly string[];
}

/** `npm run compare`. */
export async function compareCommand(
  paths: readonly string[],
  { json }: Pick<CompareWords, "json">,
): Promise<void> {
  if (paths.length === 0) {
    throw new UserError(
      "expected folders or files with dumps, or --measure, got none; see --help",
      2,
    );
  }
  const rows = paths.map((path): Row => {
    const dump = readDumps([path]);
    const { iptables4, iptables6, notes } = dump;
    const all = [...notes, ...(iptables4?.notes ?? []), ...(iptables6?.notes ?? [])];
    return { dump: path, counts: countsOf(dump), notes: [...new Set(all)] };
  });
  process.stdout.write(json ? asJson(rows) : asTable(rows));
}

const asJson = (rows: readonly Row[]): string =>
  `${JSON.stringify(rows.map(({ dump, counts, notes }) => ({ dump, ...counts, notes })))}\n`;

function asTable(rows: readonly Row[]): string {
  const kinds = Object.entries(countNames) as [keyof Counts, string][];
  const cells = [
    ["", ...rows.map(({ dump }) => dump)],
    ...kinds.map(([kind, name]) => [name, ...rows.map(({ counts }) => `${counts[kind] ?? "–"}`)]),
  ];
  const notes = rows.flatMap(({ dump, notes }) => notes.map((note) => `${dump}: ${note}\n`));
  const table = `${columns(cells, "right")}\n`;
  return notes.length === 0 ? table : `${table}\n${notes.join("")}`;
}
