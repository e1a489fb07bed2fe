/** One thing that a mirror has, or has not. */
export interface Item {
  readonly what: string;
  /** Where it came from, in words. */
  readonly from: string;
}

export interface Absence {
  readonly what: string;
  readonly why: string;
  /** What makes a cluster that does without. */
  readonly without?: string;
}

export interface Report {
  readonly items: readonly Item[];
  readonly absences: readonly Absence[];
}

/** A report in lines for a person. */
export function reportLines({ items, absences }: Report): string[] {
  const width = Math.max(0, ...items.map(({ what }) => what.length));
  return [
    ...items.map(({ what, from }) => `  ${what.padEnd(width)}  ${from}`),
    ...(absences.length > 0 ? ["could not be had here, and is not in the mirror:"] : []),
    ...absences.flatMap(({ what, why, without }) => [
      `  - ${what}: ${why}`,
      ...(without === undefined ? [] : [`    a stack without it: ${without}`]),
    ]),
  ];
}
