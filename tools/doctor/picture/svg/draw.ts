import { escaped } from "../../../shared/xml";
import type { Balancer, BalancerRule } from "../balancers";
import { counted, type Picture } from "../model";
import { channelOf, drawnLane, gutterOf, type Lane, laneOf, lanesOf, type Point } from "./lanes";
import {
  box,
  dot,
  type Drawn,
  group,
  pair,
  path,
  pill,
  pillWidth,
  type Place,
  style,
  text,
  textSize,
  widthOf,
  wrapped,
} from "./shapes";
import { type ZoneColumn, zoneColumn } from "./zone-column";

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

const cardPad = 16;

const row = 22;

/** What a rule is, by columns: where each begins, as a share of the card. */
const columns: readonly {
  readonly head: string;
  readonly at: number;
  readonly words: (rule: BalancerRule) => string;
  readonly mono?: boolean;
}[] = [
  { head: "frontend or Service", at: 0, words: ({ of }) => of },
  { head: "address", at: 0.22, words: ({ address }) => address, mono: true },
  { head: "kind", at: 0.35, words: ({ reach }) => reach },
  { head: "rule", at: 0.5, words: ({ ports }) => ports },
  { head: "probe", at: 0.66, words: ({ probe }) => probe },
  { head: "pool", at: 0.84, words: ({ pools }) => pools.join(", ") },
];

interface BalancerCard extends Drawn {
  /** Where each pool's line begins, by its name. */
  readonly starts: ReadonlyMap<string, Point>;
}

/** A table of rules, and below it the pools with their members. */
function balancerCard(
  { x, y, width }: Place,
  balancer: Balancer,
  lanes: readonly Lane[],
): BalancerCard {
  const { name, rules, pools } = balancer;
  const inner = { x: x + cardPad, width: width - 2 * cardPad };
  const table = y + 50;
  const line = table + 8 + rules.length * row;
  const poolY = (index: number) => line + 22 + index * row;
  const height = poolY(pools.length) - row + 14 - y;
  const cell = (column: number, at: number, words: string, style: object) => {
    const { at: begin } = columns[column]!;
    const end = columns[column + 1]?.at ?? 1;
    const place = { x: inner.x + begin * inner.width, width: (end - begin) * inner.width - 10 };
    return text({ ...place, y: at }, words, style);
  };
  return {
    height,
    starts: new Map(pools.map((pool, index) => [pool.name, { x, y: poolY(index) - 4 }])),
    svg: group(`load balancer ${name}`, [
      box({ x, y, width }, height, { fill: "card" }),
      text({ ...inner, y: y + 24 }, `Load balancer ${name}`, { size: 13.5, bold: true }),
      ...columns.map(({ head }, column) =>
        cell(column, table - 4, head, { size: 11, colour: "quiet" }),
      ),
      ...rules.flatMap((rule, index) =>
        columns.map(({ words, mono }, column) =>
          cell(column, table + (index + 0.75) * row, words(rule), { mono }),
        ),
      ),
      path(`M${inner.x} ${line}h${inner.width}`, "edge"),
      ...pools.map((pool, index) => {
        const lane = laneOf(lanes, name, pool.name);
        const title = `pool ${pool.name}`;
        const at = { x: inner.x, y: poolY(index) };
        const width = Math.min(widthOf(title, { size: textSize, bold: true }), inner.width / 2);
        const after = inner.x + width + 12;
        const count = pool.members.length;
        const members = `${counted(count, "machine")}: ${pool.members.join(", ")}`;
        return group(title, [
          ...(lane === undefined ? [] : [dot(x, at.y - 4, lane.colour)]),
          text({ ...at, width }, title, {
            bold: true,
            colour: lane?.colour ?? "quiet",
          }),
          count === 0
            ? pill(after, at.y - 14, emptyPool)
            : text({ x: after, y: at.y, width: inner.x + inner.width - after }, members, {
                colour: "quiet",
              }),
        ]);
      }),
    ]),
  };
}

const emptyPool = { tone: "warn", word: "no machine in it" } as const;
