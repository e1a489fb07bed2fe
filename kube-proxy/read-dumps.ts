import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

import { Trouble } from "../local-azure/trouble";
import { assemble } from "./assemble";
import type { NodeDump } from "./node-dump";
import { recognise } from "./recognise";

/** One file, or what stands for one. */
export interface DumpText {
  readonly file: string;
  readonly text: string;
}

/** What the files in these folders, and these files, say of one node. */
export function readDumps(paths: readonly string[]): NodeDump {
  return nodeDump(paths.flatMap(files).map((file) => ({ file, text: textOf(file) })));
}

export function nodeDump(texts: readonly DumpText[], remarks: readonly string[] = []): NodeDump {
  const empty = texts.filter(({ text }) => text.trim() === "").map(({ file }) => file);
  const recognised = texts
    .filter(({ file }) => !empty.includes(file))
    .flatMap(({ file, text }) => recognise(text, file));
  if (recognised.length === 0) {
    throw new Trouble(
      `expected a dump with something in it, got nothing but empty files: ${empty.join(", ")}`,
      2,
    );
  }
  return assemble(recognised, [
    ...remarks,
    ...empty.map((file) => `${file} is empty, so nothing is known from it.`),
    ...recognised
      .filter(({ section }) => section.isOpen && !selfEnding.test(section.text))
      .map(({ file }) => `${file} ends without a line end, so its last line may be cut off.`),
  ]);
}

/** COMMIT, braces and brackets show that nothing is missing. */
const selfEnding = /(\nCOMMIT|[\]}])\s*$/;

function files(path: string): string[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    throw new Trouble(
      `expected a folder of dumps or a dump, got ${resolve(path)}, which is not there`,
      2,
    );
  }
  if (!found.isDirectory()) return [path];
  const entries = readdirSync(path, { withFileTypes: true })
    .filter(({ name }) => !name.startsWith("."))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const names = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
  if (names.length > 0) return names.map((name) => join(path, name));
  const folders = entries.map(({ name }) => join(path, name));
  throw new Trouble(
    `expected dumps in ${path}, got ` +
      (folders.length === 0
        ? "an empty folder"
        : `only folders: name the one of the node, such as ${folders[0]}`),
    2,
  );
}

function textOf(file: string): string {
  const bytes = readFileSync(file);
  // PowerShell writes what it redirects in two bytes a letter.
  const encoding = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf16le" : "utf8";
  return bytes
    .toString(encoding)
    .replace(/^\ufeff/, "")
    .replace(/\r\n?/g, "\n");
}
