import { escaped } from "../../shared/xml";
import type { Colour } from "./palette";
import { type Font, fitted, widthOf } from "./words";

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
