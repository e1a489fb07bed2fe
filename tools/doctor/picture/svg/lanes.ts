import type { Balancer } from "../balancers";
import { type Colour, dot, group, laneColour, path } from "./shapes";

/** The way from a pool to the machines in it, which has its own place in every gutter. */
export interface Lane {
  readonly balancer: string;
  readonly pool: string;
  readonly members: readonly string[];
  readonly index: number;
  readonly colour: Colour;
}

const pitch = 9;

const before = 14;

/** One for each pool that has members. */
export const lanesOf = (balancers: readonly Balancer[]): Lane[] =>
  balancers
    .flatMap(({ name, pools }) =>
      pools.map((pool) => ({ balancer: name, pool: pool.name, members: pool.members })),
    )
    .filter(({ members }) => members.length > 0)
    .map((lane, index) => ({ ...lane, index, colour: laneColour(index) }));

export const laneOf = (lanes: readonly Lane[], balancer: string, pool: string): Lane | undefined =>
  lanes.find((lane) => lane.balancer === balancer && lane.pool === pool);

/** How much of a box's left side lanes take. */
export const gutterOf = (lanes: readonly Lane[]): number => before + lanes.length * pitch;

/** How much of the page they take between pools and zones. */
export const channelOf = (lanes: readonly Lane[]): number => 20 + lanes.length * pitch;

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A column of machines, by its left edge, and where their cards begin. */
export interface Column {
  readonly left: number;
  readonly cards: readonly (Point & { readonly name: string })[];
}

/** What is above a lane's zones. */
export interface Way {
  /** Where its pool is written. */
  readonly start: Point;
  /** Edge of the box that holds the pools. */
  readonly left: number;
  /** Where the channel begins. */
  readonly channel: number;
  /** How many lanes there are. */
  readonly count: number;
}

/** Where the line of a lane enters a card: lanes are side by side there too. */
const entry = 20;

/**
 * Lines from pools to machines: down the gutter, along the channel above the zones, down each zone's
 * gutter.
 */
export function drawnLane(
  lane: Lane,
  { start, left, channel, count }: Way,
  columns: readonly Column[],
): string {
  const level = channel + 10 + lane.index * pitch;
  const drops = columns
    .map((column) => ({
      // The first lane leads to the first cards, so that it is the one beside them.
      x: column.left + before + (count - 1 - lane.index) * pitch,
      cards: column.cards.filter(({ name }) => lane.members.includes(name)),
    }))
    .filter(({ cards }) => cards.length > 0);
  const taps = drops.flatMap(({ x, cards }) =>
    cards.map((card) => ({ from: x, to: card.x, y: card.y + entry + lane.index * pitch })),
  );
  const ends = drops.map(({ x }) => x);
  const from = left + before + lane.index * pitch;
  return group(`${lane.balancer}, pool ${lane.pool}: ${lane.members.join(", ")}`, [
    path(`M${start.x} ${start.y}H${from}V${level}`, lane.colour, 1.5),
    path(`M${Math.min(from, ...ends)} ${level}H${Math.max(from, ...ends)}`, lane.colour, 1.5),
    ...drops.map(({ x, cards }) =>
      path(
        `M${x} ${level}V${Math.max(...cards.map(({ y }) => y)) + entry + lane.index * pitch}`,
        lane.colour,
        1.5,
      ),
    ),
    ...taps.map(({ from, to, y }) => path(`M${from} ${y}H${to}`, lane.colour, 1.5)),
    ...taps.map(({ to, y }) => dot(to, y, lane.colour)),
  ]);
}
