import { escaped } from "../../shared/xml";
import type { Answer, Step } from "../model/packet";
import { share, title, type Visit, visits } from "./words";

const margin = 24;

const cardWidth = 520;

const fanWidth = 170;

const targetWidth = 320;

const width = margin + cardWidth + fanWidth + targetWidth + margin;

const top = 76;

const gap = 22;

/** A card shows as many rules; the words of `trace` have all of them. */
const shown = 7;

const colours = {
  dnat: "#1a7f37",
  drop: "#b42318",
  reject: "#b42318",
  pass: "#475467",
  unknown: "#b54708",
};

interface Card {
  readonly visit: Visit;
  readonly rows: readonly Step[];
  readonly left: number;
  readonly y: number;
  readonly height: number;
}

interface Target {
  readonly label: string;
  readonly detail: string;
  readonly weight: number;
}

/** The path as a picture: hooks from top to bottom, and from where it splits, the endpoints. */
export function svg(answer: Answer): string {
  const colour = colours[answer.verdict];
  const cards = stack(visits(answer.steps));
  const targets = targetsOf(answer);
  const pitch = targets.length > 12 ? 24 : 46;
  const last = cards.at(-1);
  const bottom = last === undefined ? top : last.y + last.height;
  const from = splitOf(cards, answer);
  const start = from === undefined ? top : from.y + from.height / 2;
  const first = Math.max(top, start - (targets.length * pitch) / 2);
  const end = Math.max(bottom, first + targets.length * pitch) + gap;
  const reason = wrapped(answer.reason, 118);
  const height = end + 34 + reason.length * 18;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}"`,
    ` width="${width}" height="${height}" font-family="system-ui, sans-serif">`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    text(margin, 36, title(answer.packet), { size: 19, bold: true, fit: 88 }),
    text(margin, 57, `kube-proxy in ${answer.mode} mode`, { size: 12, fill: "#667085" }),
    ...cards.map((card, index) =>
      drawn(card, cards[index + 1], card === from ? colour : undefined),
    ),
    ...targets.map((target, index) =>
      fan({ target, start, y: first + (index + 0.5) * pitch, pitch, colour }),
    ),
    text(margin, end + 18, answer.verdict, { size: 15, bold: true, fill: colour }),
    ...reason.map((words, index) => text(margin, end + 40 + index * 18, words, { size: 13 })),
    `</svg>`,
    "",
  ].join("\n");
}

function stack(all: readonly Visit[]): Card[] {
  let y = top;
  return all.map((visit) => {
    const rows = visit.steps.length > shown ? visit.steps.slice(0, shown - 1) : visit.steps;
    const left = visit.steps.length - rows.length;
    const height = 38 + rows.length * 34 + (left > 0 ? 18 : 0);
    const card = { visit, rows, left, y, height };
    y += height + gap;
    return card;
  });
}

/** Where the destination is chosen: the first card that names an endpoint, else the last. */
function splitOf(cards: readonly Card[], { endpoints }: Answer): Card | undefined {
  const names = ({ rule, effect }: Step): boolean =>
    endpoints.some(({ address }) => rule.includes(address) || effect.includes(address));
  return cards.find(({ visit }) => visit.steps.some(names)) ?? cards.at(-1);
}

function targetsOf({ endpoints, verdict, masquerade, packet }: Answer): Target[] {
  if (verdict === "pass")
    return [{ label: "goes on as it is", detail: packet.destination, weight: 1 }];
  if (endpoints.length === 0) return [{ label: verdict, detail: "", weight: 1 }];
  return endpoints.map((endpoint) => ({
    label: endpoint.address,
    detail: [
      share(endpoint.probability),
      { true: "masqueraded", false: "", unknown: "perhaps masqueraded" }[
        `${endpoint.masquerade ?? masquerade}`
      ],
    ]
      .filter((part) => part !== "")
      .join(", "),
    weight: endpoint.probability,
  }));
}

function drawn(card: Card, next: Card | undefined, colour = "#d0d5dd"): string {
  const { visit, rows, left, y, height } = card;
  const middle = margin + 30;
  return group(visit.title, [
    `<rect x="${margin}" y="${y}" width="${cardWidth}" height="${height}" rx="8" fill="#f9fafb" stroke="${colour}"/>`,
    text(margin + 14, y + 21, visit.title, { size: 13, bold: true, fit: 70 }),
    ...rows.flatMap(({ chain, rule, effect }, index) => {
      const at = y + 45 + index * 34;
      return [
        group(rule, [
          text(margin + 14, at, chain, { size: 12, mono: true, fit: 66 }),
          text(margin + 26, at + 15, effect, { size: 12, fill: "#475467", fit: 72 }),
        ]),
      ];
    }),
    ...(left > 0
      ? [
          text(margin + 14, y + height - 10, `and ${left} more rules`, {
            size: 12,
            fill: "#667085",
          }),
        ]
      : []),
    ...(next === undefined
      ? []
      : [line(`M${middle} ${y + height}V${next.y}`, { stroke: "#98a2b3", thickness: 1.5 })]),
  ]);
}

function fan(way: {
  readonly target: Target;
  readonly start: number;
  readonly y: number;
  readonly pitch: number;
  readonly colour: string;
}): string {
  const { target, start, y, pitch, colour } = way;
  const left = margin + cardWidth;
  const right = left + fanWidth;
  const bend = (left + right) / 2;
  const box = pitch - 6;
  return group(`${target.label} ${target.detail}`, [
    line(`M${left} ${start}C${bend} ${start} ${bend} ${y} ${right} ${y}`, {
      stroke: colour,
      thickness: Math.max(1, Math.min(10, target.weight * 10)),
      opacity: 0.55,
    }),
    `<rect x="${right}" y="${y - box / 2}" width="${targetWidth}" height="${box}" rx="6" fill="#ffffff" stroke="${colour}"/>`,
    text(right + 12, y + 4, target.label, { size: 12, mono: true, bold: true, fit: 26 }),
    text(right + targetWidth - 12, y + 4, target.detail, { size: 12, anchor: "end", fit: 40 }),
  ]);
}

interface TextStyle {
  readonly size: number;
  readonly bold?: boolean;
  readonly mono?: boolean;
  readonly fill?: string;
  readonly anchor?: "end";
  /** As many characters at most. */
  readonly fit?: number;
}

function text(x: number, y: number, words: string, style: TextStyle): string {
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

const line = (path: string, { stroke, thickness, opacity = 1 }: LineStyle): string =>
  `<path d="${path}" fill="none" stroke="${stroke}" stroke-width="${thickness}" stroke-opacity="${opacity}"/>`;

/** Shapes with a tooltip. */
const group = (tooltip: string, shapes: readonly string[]): string =>
  ["<g>", `<title>${escaped(tooltip)}</title>`, ...shapes, "</g>"].join("\n");

/** In lines of at most so many characters, broken between words. */
function wrapped(sentence: string, length: number): string[] {
  return sentence.split(" ").reduce<string[]>((lines, word) => {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > length) return [...lines, word];
    return [...lines.slice(0, -1), `${last} ${word}`];
  }, []);
}
