import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

import { UserError } from "../../shared/user-error";
import type { NodeDump } from "../model/dump";
import { assemble, noDump, otherCommand, recognise } from "./assemble";

/** One file, or what stands for one. */
export interface DumpText {
  readonly file: string;
  readonly text: string;
  /** Whether a person named it, not only the folder that it is in. */
  readonly isNamed?: boolean;
}

/** What the files in these folders, and these files, say of one node. */
export function readDumps(paths: readonly string[]): NodeDump {
  return nodeDump(
    paths.flatMap((path) =>
      files(path).map((file) => ({ file, text: textOf(file), isNamed: file === path })),
    ),
  );
}

export function nodeDump(texts: readonly DumpText[], remarks: readonly string[] = []): NodeDump {
  const read = texts.map((text) => ({ ...text, dumps: recognise(text.text, text.file) }));
  const recognised = read.flatMap(({ dumps }) => dumps);
  const without = read.filter(({ dumps }) => dumps.length === 0);
  const strange = without.filter(({ text }) => text.trim() !== "" && otherCommand(text) === null);
  const refused = strange.find(({ isNamed }) => recognised.length === 0 || isNamed === true);
  if (refused !== undefined) throw noDump(refused.text, refused.file);
  const notes = without.map(({ file, text }) => notRead(file, text));
  if (recognised.length === 0) {
    throw new UserError(`expected a dump with something in it, got none: ${notes.join(" ")}`, 2);
  }
  return assemble(recognised, [
    ...remarks,
    ...notes,
    ...recognised
      .filter(({ section }) => section.endsWithinLine && !selfEnding.test(section.text))
      .map(({ file }) => `${file} ends without a line end, so its last line may be cut off.`),
  ]);
}

function notRead(file: string, text: string): string {
  if (text.trim() === "") return `${file} is empty, so nothing is known from it.`;
  const command = otherCommand(text);
  return command === null
    ? `${file} is passed over: it is not recognised as a dump.`
    : `${file} is passed over: nothing in the output of \`${command}\` decides where a packet goes.`;
}

/** COMMIT, braces and brackets show that nothing is missing. */
const selfEnding = /(\nCOMMIT|[\]}])\s*$/;

function files(path: string): string[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    throw new UserError(
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
  throw new UserError(
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
