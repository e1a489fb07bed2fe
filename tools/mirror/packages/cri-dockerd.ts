import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { versions } from "../../../components/versions";
import { writeWhole } from "../../shared/files";
import { withTimeLimit } from "../../shared/time-limit";
import { sha256OfFile } from "../hash";
import type { Missing, Item } from "../report";

const archive = `cri-dockerd-${versions.criDockerd}.amd64.tgz`;
const url = `https://github.com/Mirantis/cri-dockerd/releases/download/v${versions.criDockerd}/${archive}`;
const fetchWithin = 120_000;

/**
 * cri-dockerd's release archive, and beside it the SHA-256 that machines check it by. Upstream
 * publishes none: the sum only proves that machines get what was downloaded here.
 */
export async function fetchCriDockerd(
  folder: string,
  signal: AbortSignal,
): Promise<Item | Missing> {
  const file = join(folder, archive);
  const item = { what: archive, from: url };
  if (existsSync(file) && existsSync(`${file}.sha256`)) return item;
  const draft = `${file}.new`;
  try {
    const content = await withTimeLimit(fetchWithin, signal, async (either) => {
      const response = await fetch(url, { signal: either });
      if (!response.ok) throw new Error(`answered ${response.status}`);
      return Buffer.from(await response.arrayBuffer());
    });
    mkdirSync(folder, { recursive: true });
    await writeFile(draft, content);
    writeWhole(`${file}.sha256`, `${await sha256OfFile(draft)}  ${archive}\n`);
    renameSync(draft, file);
    return item;
  } catch {
    signal.throwIfAborted();
    return {
      what: "cri-dockerd",
      why: "github.com does not answer, and it cannot be built from Go modules",
      without: "pulumi config set containerRuntime docker",
    };
  } finally {
    rmSync(draft, { force: true });
  }
}
