import type { Balancer, BalancerRule } from "../balancers";
import { counted } from "../model";
import { type Lane, laneOf, type Point } from "./lanes";
import {
  box,
  dot,
  type Drawn,
  group,
  path,
  pill,
  type Place,
  text,
  textSize,
  widthOf,
} from "./shapes";

const pad = 16;

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

export interface BalancerCard extends Drawn {
  /** Where each pool's line begins, by its name. */
  readonly starts: ReadonlyMap<string, Point>;
}

/** A table of rules, and below it the pools with their members. */
export function balancerCard(
  { x, y, width }: Place,
  balancer: Balancer,
  lanes: readonly Lane[],
): BalancerCard {
  const { name, rules, pools } = balancer;
  const inner = { x: x + pad, width: width - 2 * pad };
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
