import { type Continues, type Kind, shapes } from "./shapes";

/** The output of one command, or several of its kind in a row, out of a longer text. */
export interface Section {
  readonly kind: Kind;
  readonly text: string;
  /** Where it begins in the file, from 1. */
  readonly firstLine: number;
  /** Whether the text ends within its last line, as it does where a dump was cut off. */
  readonly endsWithinLine: boolean;
}

/** Quoting and bullets that people's editors put before what they paste. */
const decoration = /^[\s•·●◦‣>|]+/;

const bullet = /^\s*[•·●◦‣]\s*/;

/** Markup, or a prompt that waits for the next command. */
const notCutOff = /^(```|~~~|\{\{|<\/?\w)|[$#%]$/;

/** What in a text looks like commands' output; the prose around it is left out. */
export function sectionsOf(text: string): Section[] {
  const lines = text.split("\n");
  const sections: Section[] = [];
  for (let at = 0; at < lines.length;) {
    const begins = begun(lines, at);
    if (begins === null) {
      at += 1;
      continue;
    }
    const end = endOf(lines, at, begins.continues);
    sections.push({
      kind: begins.kind,
      text: undecorated(lines.slice(at, end)),
      firstLine: at + 1,
      endsWithinLine: end === lines.length,
    });
    at = end;
  }
  return sections;
}

function begun(
  lines: readonly string[],
  at: number,
): { readonly kind: Kind; readonly continues: Continues } | null {
  const first = bare(lines[at] ?? "");
  if (first === "") return null;
  const next = bare(lines.slice(at + 1, at + 3).join(" "));
  for (const [kind, shape] of shapes) {
    const continues = shape(first, next);
    if (continues !== null) return { kind, continues };
  }
  return null;
}

/** The line after the last that belongs to what begins at `start`. */
function endOf(lines: readonly string[], start: number, continues: Continues): number {
  let end = start;
  for (let at = start; at < lines.length; at += 1) {
    const line = bare(lines[at] ?? "");
    if (line === "") continue;
    // A file that ends within a line may be cut off there, which its parser can detect.
    const isCutOff = at === lines.length - 1 && at === end && !notCutOff.test(line);
    if (!continues(line, at > end) && !isCutOff) break;
    end = at + 1;
  }
  return end;
}

const bare = (line: string): string => line.replace(decoration, "").trimEnd();

/** Without bullets, and without what stands before the first line and others. */
function undecorated(lines: string[]): string {
  const before = decoration.exec(lines[0] ?? "")?.[0] ?? "";
  return lines
    .map((line) => (before !== "" && line.startsWith(before) ? line.slice(before.length) : line))
    .map((line) => (bullet.test(line) ? line.replace(bullet, "") : line))
    .join("\n");
}
