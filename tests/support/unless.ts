/**
 * What keeps claims from being tried here is said behind their names, from where `npm test` takes
 * it into its verdict.
 */
const titled = (title: string, reason: string): string => `${title} (skipped: ${reason})`;

/** `it`, which skips where there is an obstacle. */
export const itUnless =
  (reason: string | undefined) =>
  (claim: string, test: jest.ProvidesCallback): void =>
    reason === undefined ? it(claim, test) : it.skip(titled(claim, reason), test);

/** `describe`, which skips where there is an obstacle. */
export const describeUnless =
  (reason: string | undefined) =>
  (title: string, tests: () => void): void =>
    reason === undefined ? describe(title, tests) : describe.skip(titled(title, reason), tests);

export const asRoot = process.getuid?.() === 0 ? undefined : "it needs root";
