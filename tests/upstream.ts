import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { Manifest } from "../components/versions";

const folder = process.env["ZONED_MANIFESTS"] ?? "";

const reason = "skipped: ZONED_MANIFESTS names no folder that has the upstream manifests";

/**
 * A claim about upstream's own files. Where they are not at hand it is reported as skipped, with
 * the reason.
 */
export function itWith(
  list: readonly Manifest[],
  claim: string,
  test: (texts: ReadonlyMap<string, string>) => Promise<void> | void,
): void {
  if (list.some(({ path }) => !existsSync(join(folder, path)))) {
    it.skip(`${claim} (${reason})`, () => {});
    return;
  }
  const texts = new Map(list.map(({ path }) => [path, readFileSync(join(folder, path), "utf8")]));
  it(claim, async () => {
    await test(texts);
  });
}
