import type { Status } from "../status";
import { box, dot, text } from "./shapes";
import { widthOf } from "./words";

const font = { size: 11.5, bold: true };

const height = 20;

export const pillWidth = ({ word }: Status): number => Math.ceil(widthOf(word, font)) + 30;

/** A word on its colour. */
export function pill(x: number, y: number, status: Status): string {
  const { tone, word } = status;
  const width = pillWidth(status);
  return [
    box({ x, y, width }, height, {
      fill: `${tone}Tint`,
      stroke: `${tone}Tint`,
      radius: height / 2,
    }),
    dot(x + 12, y + height / 2, tone),
    text({ x: x + 21, y: y + 14, width }, word, { ...font, colour: tone }),
  ].join("\n");
}
