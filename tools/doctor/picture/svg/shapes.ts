import { escaped } from "../../../shared/xml";
import type { Status } from "../machines";

export interface Place {
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

/** Something drawn, and how much of the page it takes. */
export interface Drawn {
  readonly height: number;
  readonly svg: string;
}

interface TextStyle extends Partial<Font> {
  readonly colour?: Colour;
  readonly end?: boolean;
}

export const textSize = 12;

/** Words on a line; those that do not fit are shortened, and whole in a tooltip. */
export function text(
  { x, y, width }: Place,
  words: string,
  { size = textSize, bold, mono, colour = "ink", end }: TextStyle = {},
): string {
  if (words === "") return "";
  const shown = fitted(words, width, { size, bold, mono });
  const classes = [`f-${colour}`, bold && "bold", mono && "mono"].filter((one) => one);
  const attributes = [
    `x="${end ? x + width : x}" y="${y}" font-size="${size}" class="${classes.join(" ")}"`,
    ...(end ? [`text-anchor="end"`] : []),
  ];
  const tooltip = shown === words ? "" : `<title>${escaped(words)}</title>`;
  return `<text ${attributes.join(" ")}>${tooltip}${escaped(shown)}</text>`;
}

/** Words at the left and at the right of a line, of which the left ones give way. */
export function pair(
  { x, y, width }: Place,
  left: readonly [words: string, style?: TextStyle],
  right: readonly [words: string, style?: TextStyle],
): string {
  const taken = widthOf(right[0], { size: textSize, ...right[1] });
  const most = Math.min(taken, width * 0.65);
  return [
    text({ x, y, width: width - most - 8 }, ...left),
    text({ x: x + width - most, y, width: most }, right[0], { ...right[1], end: true }),
  ].join("\n");
}

export const box = (
  { x, y, width }: Place,
  height: number,
  { fill, stroke = "edge", radius = 8 }: { fill: Colour; stroke?: Colour; radius?: number },
): string =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${radius}" class="f-${fill} s-${stroke}"/>`;

export const path = (way: string, colour: Colour, thickness = 1): string =>
  `<path d="${way}" fill="none" class="s-${colour}" stroke-width="${thickness}"/>`;

export const dot = (x: number, y: number, colour: Colour): string =>
  `<circle cx="${x}" cy="${y}" r="4" class="f-${colour}"/>`;

/** Shapes with a name, which a screen reader says and a pointer shows. */
export const group = (title: string, shapes: readonly string[]): string =>
  ["<g>", `<title>${escaped(title)}</title>`, ...shapes, "</g>"].join("\n");

interface Font {
  readonly size: number;
  readonly bold?: boolean;
  readonly mono?: boolean;
}

/** Widths in a wide font, as a share of its size: which one a browser takes is not known. */
const characters: readonly (readonly [RegExp, number])[] = [
  [/[ijl.,:;'|!I ]/, 0.34],
  [/[frt()[\]/"-]/, 0.42],
  [/[mwMW@%…→]/, 0.98],
  [/[A-Z0-9_]/, 0.68],
  [/[\u2e80-\u{10ffff}]/u, 1.05],
];

const share = (character: string): number =>
  characters.find(([pattern]) => pattern.test(character))?.[1] ?? 0.62;

/** How wide words are at most, in pixels. */
export function widthOf(words: string, { size, bold = false, mono = false }: Font): number {
  const shares = [...words].map((one) => (mono && one < "\u2e80" ? 0.61 : share(one)));
  return shares.reduce((sum, one) => sum + one, 0) * size * (bold && !mono ? 1.1 : 1);
}

/** The words, or as much of their beginning as fits. */
function fitted(words: string, width: number, font: Font): string {
  if (widthOf(words, font) <= width) return words;
  const left = [...words];
  while (left.length > 0 && widthOf(`${left.join("")}…`, font) > width) {
    left.pop();
  }
  return `${left.join("").trimEnd()}…`;
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

const pillFont = { size: 11.5, bold: true };

const pillHeight = 20;

export const pillWidth = ({ word }: Status): number => Math.ceil(widthOf(word, pillFont)) + 30;

/** A word on its colour. */
export function pill(x: number, y: number, status: Status): string {
  const { tone, word } = status;
  const width = pillWidth(status);
  return [
    box({ x, y, width }, pillHeight, {
      fill: `${tone}Tint`,
      stroke: `${tone}Tint`,
      radius: pillHeight / 2,
    }),
    dot(x + 12, y + pillHeight / 2, tone),
    text({ x: x + 21, y: y + 14, width }, word, { ...pillFont, colour: tone }),
  ].join("\n");
}

/** Each colour by its use: on a light page, and on a dark one. */
const colours = {
  page: ["#ffffff", "#0f1318"],
  region: ["#f5f7fa", "#151b22"],
  network: ["#eef2f7", "#1a222b"],
  zone: ["#ffffff", "#10161c"],
  card: ["#ffffff", "#1c242d"],
  edge: ["#ccd5df", "#36424f"],
  ink: ["#16202b", "#e6ebf1"],
  quiet: ["#56646f", "#9ba9b7"],
  good: ["#11703c", "#5fcf8e"],
  goodTint: ["#e2f4e9", "#15362a"],
  warn: ["#8a5300", "#f0b75a"],
  warnTint: ["#fdf0d9", "#3d2f14"],
  bad: ["#b3211b", "#ff958c"],
  badTint: ["#fdeae8", "#43201f"],
  unknown: ["#56646f", "#9ba9b7"],
  unknownTint: ["#e9edf2", "#2a333d"],
  lane0: ["#2463c4", "#78adff"],
  lane1: ["#8245b5", "#c99bf5"],
  lane2: ["#0a7d84", "#52ccd3"],
  lane3: ["#a8501c", "#f29e6c"],
} as const;

export type Colour = keyof typeof colours;

const lanes = ["lane0", "lane1", "lane2", "lane3"] as const;

/** The colour of a pool's lines; the fifth has the first one's again. */
export const laneColour = (index: number): Colour => lanes[index % lanes.length]!;

const rules = (theme: 0 | 1): string[] => [
  // A window may be larger than the picture.
  `svg{background:${colours.page[theme]}}`,
  ...Object.entries(colours).flatMap(([name, values]) => [
    `.f-${name}{fill:${values[theme]}}`,
    `.s-${name}{stroke:${values[theme]}}`,
  ]),
];

/** Colours by class, so that a page's theme chooses them. */
export const style = [
  "svg{display:block;margin:0 auto}",
  "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}",
  ".bold{font-weight:600}",
  ".mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}",
  ...rules(0),
  `@media (prefers-color-scheme:dark){${rules(1).join("")}}`,
].join("\n");
