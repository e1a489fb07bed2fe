import type { Picture } from "../model";
import { type BalancerCard, balancerCard } from "./balancer-card";
import { channelOf, drawnLane, gutterOf, type Lane, lanesOf } from "./lanes";
import { style } from "./palette";
import { box, type Drawn, group, pair, pill, pillWidth, type Place, text, wrapped } from "./shapes";
import { type ZoneColumn, zoneColumn } from "./zone-column";
import { escaped } from "../../shared/xml";

const pageWidth = 1200;

const margin = 24;

const pad = 14;

const gap = 14;

const page = { x: margin, width: pageWidth - 2 * margin };

/** The picture as one document, whose colours follow the reader's theme. */
export function draw(picture: Picture): string {
  const lanes = lanesOf(picture.balancers);
  const head = header(picture);
  const problems = problemPanel({ ...page, y: head.height }, picture);
  const region = regionBox({ ...page, y: head.height + problems.height }, picture, lanes);
  const channel = head.height + problems.height + region.height;
  const network = networkBox({ ...page, y: channel + channelOf(lanes) }, picture, lanes);
  const lines = lanes.map((lane) =>
    drawnLane(
      lane,
      {
        start: region.cards.get(lane.balancer)!.starts.get(lane.pool)!,
        ...{ left: page.x, channel, count: lanes.length },
      },
      network.columns,
    ),
  );
  const height = channel + channelOf(lanes) + network.height + margin;
  const title = `Stack ${picture.stack}: ${picture.status.word}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${pageWidth} ${height}" width="${pageWidth}" height="${height}">`,
    `<title>${escaped(title)}</title>`,
    `<style>${style}</style>`,
    `<rect width="100%" height="100%" class="f-page"/>`,
    ...[head, problems, region, network].map(({ svg }) => svg),
    ...lines,
    `</svg>`,
    "",
  ].join("\n");
}

function header({ stack, group: name, versions, time, status }: Picture): Drawn {
  const when = `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
  const words = [`resource group ${name}`, ...versions.map((one) => `kubelets ${one}`), when];
  return {
    height: 96,
    svg: [
      text({ ...page, y: 50, width: page.width - pillWidth(status) - 16 }, `Stack ${stack}`, {
        size: 24,
        bold: true,
      }),
      pill(page.x + page.width - pillWidth(status), 32, status),
      text({ ...page, y: 74 }, words.join("  ·  "), { size: 13, colour: "quiet" }),
    ].join("\n"),
  };
}

const problemFont = { size: 12.5 };

/** As many lines of a problem. */
const mostLines = 4;

function problemPanel({ x, y, width }: Place, { problems, status }: Picture): Drawn {
  if (problems.length === 0) return { height: 0, svg: "" };
  const lines = problems.flatMap(({ about, saw }) =>
    wrapped(`✗ ${about}: ${saw}`, width - 32, problemFont, mostLines),
  );
  const height = 22 + lines.length * 18;
  return {
    height: height + gap,
    svg: group([status.word, ...problems.map(({ about, saw }) => `${about}: ${saw}`)].join("\n"), [
      box({ x, y, width }, height, { fill: "badTint", stroke: "bad" }),
      ...lines.map((words, index) =>
        text({ x: x + 16, y: y + 24 + index * 18, width: width - 32 }, words, {
          ...problemFont,
          colour: "bad",
        }),
      ),
    ]),
  };
}

interface RegionBox extends Drawn {
  readonly cards: ReadonlyMap<string, BalancerCard>;
}

/** What is in no single zone: balancers with their addresses, and what else is left. */
function regionBox({ x, y, width }: Place, picture: Picture, lanes: readonly Lane[]): RegionBox {
  const inner = { x: x + gutterOf(lanes), width: width - gutterOf(lanes) - pad };
  const cards = new Map<string, BalancerCard>();
  let bottom = y + 42;
  for (const balancer of picture.balancers) {
    const card = balancerCard({ ...inner, y: bottom }, balancer, lanes);
    cards.set(balancer.name, card);
    bottom += card.height + gap;
  }
  const others = [
    ...picture.addresses.map(({ name, address, reach }) => ({
      left: `public address ${name}`,
      right: `${address}  ${reach}`,
    })),
    ...picture.disks.map(({ label, kind }) => ({
      left: `disk ${label}, attached to no machine`,
      right: kind,
    })),
  ];
  const rows = others.map(({ left, right }, index) =>
    pair({ ...inner, y: bottom + 10 + index * 20 }, [left], [right, { colour: "quiet" }]),
  );
  if (others.length > 0) bottom += others.length * 20 + 10;
  return {
    cards,
    height: bottom - y,
    svg: [
      box({ x, y, width }, bottom - y, { fill: "region" }),
      pair(
        { ...inner, y: y + 27 },
        [`Region ${picture.region}`, { size: 14, bold: true }],
        ["in no single zone", { colour: "quiet" }],
      ),
      ...[...cards.values()].map(({ svg }) => svg),
      ...rows,
    ].join("\n"),
  };
}

/** What is at the left and at the right of a line is read together up to here. */
const widestZone = 560;

interface NetworkBox extends Drawn {
  readonly columns: readonly ZoneColumn[];
}

/** The VNet, with a column for each zone. */
function networkBox({ x, y, width }: Place, picture: Picture, lanes: readonly Lane[]): NetworkBox {
  const count = Math.max(1, picture.zones.length);
  const zoneWidth = Math.min(widestZone, (width - 2 * pad - (count - 1) * gap) / count);
  const top = y + 44;
  const columns = picture.zones.map((zone, index) =>
    zoneColumn(
      { x: x + pad + index * (zoneWidth + gap), y: top, width: zoneWidth },
      zone,
      gutterOf(lanes),
    ),
  );
  const zoneHeight = Math.max(0, ...columns.map(({ height }) => height));
  const others = picture.subnets.map(({ name, range }) => `subnet ${name} ${range}`).join(", ");
  const caption = (index: number, words: string, style: object) =>
    text(
      {
        x: x + pad + index * (zoneWidth + gap) + gutterOf(lanes),
        y: y + 28,
        width: zoneWidth - gutterOf(lanes),
      },
      words,
      style,
    );
  return {
    columns,
    height: 44 + zoneHeight + pad,
    svg: [
      box({ x, y, width }, 44 + zoneHeight + pad, { fill: "network" }),
      caption(0, `VNet ${picture.network}`, { size: 14, bold: true }),
      caption(1, others, { colour: "quiet" }),
      ...columns.map(({ left, svg }, index) =>
        group(picture.zones[index]!.title, [
          box({ x: left, y: top, width: zoneWidth }, zoneHeight, { fill: "zone" }),
          svg,
        ]),
      ),
    ].join("\n"),
  };
}
