import type { Subnet, Zone } from "../model";
import type { Column } from "./lanes";
import { diskRows, machineCard } from "./machine-card";
import { box, type Drawn, pair, type Place, text } from "./shapes";

const right = 14;

const gap = 12;

export interface ZoneColumn extends Drawn, Column {}

/** What is in a zone, from top to bottom; the frame around it is as high as the highest zone's. */
export function zoneColumn({ x, y, width }: Place, zone: Zone, gutter: number): ZoneColumn {
  const inner = { x: x + gutter, width: width - gutter - right };
  const count = zone.machines.length;
  const parts = [
    pair(
      { ...inner, y: y + 28 },
      [zone.title, { size: 16, bold: true }],
      [`${count} ${count === 1 ? "machine" : "machines"}`, { colour: "quiet" }],
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
