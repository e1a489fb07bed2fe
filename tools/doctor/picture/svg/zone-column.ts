import type { Disk, Machine, Tone } from "../machines";
import { counted, type Subnet, type Zone } from "../model";
import type { Column } from "./lanes";
import { box, type Drawn, group, pair, path, pill, type Place, text, wrapped } from "./shapes";

const right = 14;

const gap = 12;

export interface ZoneColumn extends Drawn, Column {}

/** What is in a zone, from top to bottom; the frame around it is as high as the highest zone's. */
export function zoneColumn({ x, y, width }: Place, zone: Zone, gutter: number): ZoneColumn {
  const inner = { x: x + gutter, width: width - gutter - right };
  const parts = [
    pair(
      { ...inner, y: y + 28 },
      [zone.title, { size: 16, bold: true }],
      [counted(zone.machines.length, "machine"), { colour: "quiet" }],
    ),
  ];
  let bottom = y + 34;
  for (const one of zone.subnets.flatMap(subnetRows)) {
    bottom += 19;
    parts.push(pair({ ...inner, y: bottom }, [one.left], [one.right, { mono: true }]));
  }
  bottom += 14;
  const cards = [];
  for (const machine of zone.machines) {
    const place = { ...inner, y: bottom };
    const card = machineCard(place, machine);
    cards.push({ name: machine.name, x: place.x, y: place.y });
    parts.push(card.svg);
    bottom += card.height + gap;
  }
  if (zone.disks.length > 0) {
    const place = { x: inner.x + 14, y: bottom + 24, width: inner.width - 28 };
    const rows = diskRows(place, zone.disks);
    const height = 24 + rows.height + 14;
    parts.push(
      box({ ...inner, y: bottom }, height, { fill: "zone" }),
      text(place, "Disks attached to no machine", { colour: "quiet" }),
      rows.svg,
    );
    bottom += height + gap;
  }
  return { height: bottom - y, svg: parts.join("\n"), left: x, cards };
}

const subnetRows = ({ name, range, egress, egressAddresses }: Subnet) => [
  { left: `subnet ${name}`, right: range },
  egress === undefined
    ? { left: "no NAT gateway", right: "" }
    : { left: `NAT gateway ${egress}`, right: egressAddresses.join(" ") },
];

const pad = 14;

const line = 19;

const reasonFont = { size: 11.5 };

/** As many lines of a reason; the tooltip has all of it. */
const mostLines = 4;

function machineCard({ x, y, width }: Place, machine: Machine): Drawn {
  const { name, kind, size = "", address = "no address", power, node, version = "" } = machine;
  const tone = toneOf(machine);
  const inner = { x: x + pad, width: width - 2 * pad };
  const facts = [
    text({ ...inner, y: y + 24 }, name, { size: 13.5, bold: true }),
    pill(inner.x, y + 34, node),
    text({ ...inner, y: y + 48 }, power.word, {
      bold: power.tone === "bad",
      colour: power.tone === "bad" ? "bad" : "quiet",
      end: true,
    }),
    pair({ ...inner, y: y + 74 }, [kind], [size, { colour: "quiet" }]),
    pair({ ...inner, y: y + 74 + line }, [address, { mono: true }], [version, { colour: "quiet" }]),
  ];
  const disks = diskRows({ ...inner, y: y + 74 + line }, machine.disks);
  const reasons = reasonBox({ ...inner, y: y + 74 + line + disks.height }, machine.reasons, tone);
  const height = 74 + line + disks.height + reasons.height + 14;
  const words = [name, kind, node.word, power.word, ...machine.reasons].join("\n");
  return {
    height,
    svg: group(words, [
      box({ x, y, width }, height, {
        fill: "card",
        stroke: tone === "good" ? "edge" : tone,
      }),
      ...facts,
      disks.svg,
      reasons.svg,
    ]),
  };
}

/** A line for each disk, below a thin one. */
function diskRows({ x, y, width }: Place, disks: readonly Disk[]): Drawn {
  if (disks.length === 0) return { height: 0, svg: "" };
  const rows = disks.map(({ label, name, kind }, index) =>
    group(name, [
      pair({ x, y: y + 30 + index * line, width }, [label], [kind, { colour: "quiet" }]),
    ]),
  );
  return {
    height: 11 + disks.length * line,
    svg: [path(`M${x} ${y + 11}h${width}`, "edge"), ...rows].join("\n"),
  };
}

/** A Node that somebody has cordoned is worth a look, and no more. */
const toneOf = ({ reasons, node, power }: Machine): Tone =>
  reasons.length === 0 ? "good" : node.tone === "warn" && power.tone !== "bad" ? "warn" : "bad";

function reasonBox({ x, y, width }: Place, reasons: readonly string[], tone: Tone): Drawn {
  if (reasons.length === 0) return { height: 0, svg: "" };
  const lines = reasons.flatMap((reason) =>
    wrapped(`✗ ${reason}`, width - 20, reasonFont, mostLines),
  );
  const height = 12 + lines.length * 16;
  const top = y + 12;
  return {
    height: height + 12,
    svg: [
      box({ x, y: top, width }, height, { fill: `${tone}Tint`, stroke: `${tone}Tint`, radius: 6 }),
      ...lines.map((words, index) =>
        text({ x: x + 10, y: top + 18 + index * 16, width: width - 20 }, words, {
          ...reasonFont,
          colour: tone,
        }),
      ),
    ].join("\n"),
  };
}
