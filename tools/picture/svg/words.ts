export interface Font {
  readonly size: number;
  readonly bold?: boolean;
  readonly mono?: boolean;
}

/** Widths in a wide font, as a share of its size: which one a browser takes is not known. */
const classes: readonly (readonly [RegExp, number])[] = [
  [/[ijl.,:;'|!I ]/, 0.34],
  [/[frt()[\]/"-]/, 0.42],
  [/[mwMW@%…→]/, 0.98],
  [/[A-Z0-9_]/, 0.68],
  [/[\u2e80-\u{10ffff}]/u, 1.05],
];

const share = (character: string): number =>
  classes.find(([pattern]) => pattern.test(character))?.[1] ?? 0.62;

/** How wide words are at most, in pixels. */
export function widthOf(words: string, { size, bold = false, mono = false }: Font): number {
  const shares = [...words].map((one) => (mono && one < "\u2e80" ? 0.61 : share(one)));
  return shares.reduce((sum, one) => sum + one, 0) * size * (bold && !mono ? 1.1 : 1);
}

/** The words, or as much of their beginning as fits. */
export function fitted(words: string, width: number, font: Font): string {
  if (widthOf(words, font) <= width) return words;
  const characters = [...words];
  while (characters.length > 0 && widthOf(`${characters.join("")}…`, font) > width) {
    characters.pop();
  }
  return `${characters.join("").trimEnd()}…`;
}

/** Words in lines that fit, broken at spaces; what is left after the last line ends with an ellipsis. */
export function wrapped(words: string, width: number, font: Font, most: number): string[] {
  const lines: string[] = [];
  for (const word of words.split(/\s+/)) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)} ${word}`;
    const goesOn = lines.length === most || widthOf(longer, font) <= width;
    if (goesOn) lines.splice(-1, 1, longer);
    else lines.push(word);
  }
  return lines.map((line) => fitted(line, width, font));
}
