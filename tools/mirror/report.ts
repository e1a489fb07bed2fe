/** One thing that a mirror has. */
export interface Item {
  readonly what: string;
  /** Where it came from, in words. */
  readonly from: string;
}

export interface Missing {
  readonly what: string;
  readonly why: string;
  /** The command that sets up a stack without it. */
  readonly without?: string;
}

export interface Report {
  readonly items: readonly Item[];
  readonly missing: readonly Missing[];
}

/** The lines of a report. */
export function reportLines({ items, missing }: Report): string[] {
  const width = Math.max(0, ...items.map(({ what }) => what.length));
  return [
    ...items.map(({ what, from }) => `  ${what.padEnd(width)}  ${from}`),
    ...(missing.length > 0 ? ["could not be had here, and is not in the mirror:"] : []),
    ...missing.flatMap(({ what, why, without }) => [
      `  - ${what}: ${why}`,
      ...(without === undefined ? [] : [`    a stack without it: ${without}`]),
    ]),
  ];
}
