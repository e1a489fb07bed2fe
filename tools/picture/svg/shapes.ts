import { escaped } from "../../shared/xml";
import type { Status } from "../machines";
import type { Colour } from "./palette";

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
