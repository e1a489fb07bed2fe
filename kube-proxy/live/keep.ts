import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";

import { Trouble } from "../../local-azure/trouble";
import type { DumpText } from "../read-dumps";

/** Refused before the cluster is asked: two nodes' dumps in one folder are of neither. */
export function checkEmpty(folder: string): void {
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new Trouble(
      `dump: expected a new or empty folder, got ${folder}, which has files in it`,
      2,
    );
  }
}

/** The dumps as a folder, all of them or none. */
export function keep(texts: readonly DumpText[], folder: string): void {
  const whole = resolve(folder);
  mkdirSync(dirname(whole), { recursive: true });
  const draft = mkdtempSync(`${whole}.`);
  try {
    for (const { file, text } of texts) writeFileSync(join(draft, file), text);
    renameSync(draft, whole);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    throw error;
  }
}
