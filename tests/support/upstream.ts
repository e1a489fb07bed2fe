import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { Manifest } from "../../components/versions";
import { itUnless } from "./unless";

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
