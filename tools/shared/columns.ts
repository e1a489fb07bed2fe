/**
 * Rows of a table, each column as wide as its widest cell.
 *
 * @param side to which all columns but the first go: numbers stand to the right
 */
export function columns(
  rows: readonly (readonly string[])[],
  side: "left" | "right" = "left",
): string {
  const widths = rows.reduce<number[]>(
    (all, row) => row.map((cell, index) => Math.max(cell.length, all[index] ?? 0)),
    [],
  );
  return rows
    .map((row) =>
      row
        .map((cell, index) =>
          side === "right" && index > 0
            ? cell.padStart(widths[index] ?? 0)
            : cell.padEnd(widths[index] ?? 0),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");

/** The same as a table of Markdown. */
export const markdownTable = (
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string =>
  [head, head.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.map(cell).join(" | ")} |`)
    .join("\n");
