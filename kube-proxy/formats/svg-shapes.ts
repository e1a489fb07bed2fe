interface TextStyle {
  readonly size: number;
  readonly bold?: boolean;
  readonly mono?: boolean;
  readonly fill?: string;
  readonly anchor?: "end";
  /** As many characters at most. */
  readonly fit?: number;
}

export function text(x: number, y: number, words: string, style: TextStyle): string {
  const { size, bold = false, mono = false, fill = "#101828", anchor, fit = words.length } = style;
  const attributes = [
    `x="${x}" y="${y}" font-size="${size}" fill="${fill}"`,
    bold && `font-weight="600"`,
    mono && `font-family="ui-monospace, monospace"`,
    anchor && `text-anchor="${anchor}"`,
  ].filter((attribute) => attribute);
  const fitting = words.length > fit ? `${words.slice(0, fit - 1)}…` : words;
  return `<text ${attributes.join(" ")}>${escaped(fitting)}</text>`;
}

interface LineStyle {
  readonly stroke: string;
  readonly thickness: number;
  readonly opacity?: number;
}

export const line = (path: string, { stroke, thickness, opacity = 1 }: LineStyle): string =>
  `<path d="${path}" fill="none" stroke="${stroke}" stroke-width="${thickness}" stroke-opacity="${opacity}"/>`;

/** Shapes that tell more when pointed at. */
export const group = (tooltip: string, shapes: readonly string[]): string =>
  ["<g>", `<title>${escaped(tooltip)}</title>`, ...shapes, "</g>"].join("\n");

/** In lines of at most so many characters, broken between words. */
export function wrapped(sentence: string, length: number): string[] {
  return sentence.split(" ").reduce<string[]>((lines, word) => {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > length) return [...lines, word];
    return [...lines.slice(0, -1), `${last} ${word}`];
  }, []);
}

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

// XML has no place for control characters, and a pasted comment may.
const escaped = (words: string): string =>
  words
    .replace(/[&<>"]/g, (character) => escapes[character] ?? character)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, " ");
