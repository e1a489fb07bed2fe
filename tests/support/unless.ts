/**
 * What keeps claims from being tried here is said behind their names, from where `npm test` takes
 * it into its verdict.
 */
const titled = (title: string, obstacle: string): string => `${title} (skipped: ${obstacle})`;

/** `it`, which skips where there is an obstacle. */
export const itUnless =
  (obstacle: string | undefined) =>
  (claim: string, test: jest.ProvidesCallback): void =>
    obstacle === undefined ? it(claim, test) : it.skip(titled(claim, obstacle), test);

/** `describe`, which skips where there is an obstacle. */
export const describeUnless =
  (obstacle: string | undefined) =>
  (title: string, tests: () => void): void =>
    obstacle === undefined ? describe(title, tests) : describe.skip(titled(title, obstacle), tests);

export const onLinux = process.platform === "linux" ? undefined : "it needs Linux";

export const asRoot = process.getuid?.() === 0 ? undefined : "it needs root";
