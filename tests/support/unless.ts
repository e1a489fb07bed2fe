import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { Manifest } from "../../components/versions";

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

const folder = process.env["ZONED_MANIFESTS"] ?? "";

const missing = "ZONED_MANIFESTS names no folder that has the upstream manifests";

/**
 * A claim about upstream's own files. Where they are not at hand it is reported as skipped, with
 * the reason.
 */
export function itWith(
  list: readonly Manifest[],
  claim: string,
  test: (texts: ReadonlyMap<string, string>) => Promise<void> | void,
): void {
  const isThere = list.every(({ path }) => existsSync(join(folder, path)));
  itUnless(isThere ? undefined : missing)(claim, async () =>
    test(new Map(list.map(({ path }) => [path, readFileSync(join(folder, path), "utf8")]))),
  );
}
