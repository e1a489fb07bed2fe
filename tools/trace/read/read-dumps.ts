import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

import { UserError } from "../../shared/user-error";
import {
  type Addresses,
  DumpProblem,
  type Interface,
  type IpSets,
  type NodeDump,
  type Routes,
  type VirtualServers,
} from "../model/dump";
import type { Iptables } from "../model/iptables";
import type { Chain, Ruleset, Table } from "../model/nftables";
import { parseAddresses, parseRoutes } from "./ip";
import { parse as parseIpset } from "./ipset";
import { mergeIptables, parse as parseIptables } from "./iptables/parse";
import { isOfKernel, parse as parseIpvs } from "./ipvs";
import { parse as parseNftables } from "./nftables/parse";
import { type Section, sectionsOf } from "./sections";

type Of<K extends Recognised["kind"]> = Extract<Recognised, { kind: K }>;

/** All that was recognised, as what one node has. */
function assemble(recognised: readonly Recognised[], remarks: readonly string[]): NodeDump {
  const notes = new Set(remarks);
  const note = (sentence: string): void => void notes.add(sentence);
  const all = <K extends Recognised["kind"]>(kind: K): Of<K>[] =>
    recognised.filter((each): each is Of<K> => each.kind === kind);
  const iptables = all("iptables").flatMap(({ content }) => content);
  return {
    iptables4: mergeIptables(iptables.filter(({ family }) => family === 4)),
    iptables6: mergeIptables(iptables.filter(({ family }) => family === 6)),
    ipsets: joined(all("ipset"), (dumps) => ({
      sets: unite(
        "set",
        parts(dumps, has(/^create /m), ({ sets }) => sets),
        note,
      ),
    })),
    ipvs: joined(all("ipvs"), (dumps) => ({
      servers: unite(
        "virtual server",
        parts(dumps, ofIpvs, ({ servers }) => servers),
        note,
      ),
    })),
    nftables: joined(all("nftables"), (dumps) => ({
      tables: unite(
        "table",
        parts(dumps, has(/^\s*\{/), ({ tables }) => tables),
        note,
        mergeTables,
      ),
    })),
    addresses: joined(all("addresses"), (dumps) => ({
      interfaces: [
        ...unite(
          "interface",
          parts(dumps, has(/^\s*\[/), ({ interfaces }) => byName(interfaces)),
          note,
          mergeInterfaces,
        ).values(),
      ],
    })),
    routes: joined(all("routes"), (dumps) => ({
      routes: unite(
        "route",
        parts(dumps, has(/^\s*\[/), ({ routes }) => routes),
        note,
      ),
    })),
    notes: [...notes],
  };
}

type Some<T> = readonly [T, ...T[]];

/** One value of several of its kind, under the name of the first file; null of none. */
function joined<R extends Recognised, T extends object>(
  dumps: readonly R[],
  join: (dumps: Some<R>) => T,
): (T & { file: string }) | null {
  const [first, ...others] = dumps;
  return first === undefined ? null : { file: first.file, ...join([first, ...others]) };
}

/** What a section has in it that is the more exact of the two ways to print its kind. */
const has =
  (exact: RegExp) =>
  (text: string): number =>
    exact.test(text) ? 1 : 0;

/** `ipvsadm -Sn` before `-ln` before the kernel's own list. */
const ofIpvs = (text: string): number =>
  /^-A /m.test(text) ? 2 : isOfKernel(text.split("\n")) ? 0 : 1;

const parts = <R extends Recognised, T>(
  dumps: readonly R[],
  exactness: (text: string) => number,
  things: (content: R["content"]) => ReadonlyMap<string, T>,
): Part<T>[] =>
  dumps.map(({ file, section, content }) => ({
    file,
    line: section.firstLine,
    exactness: exactness(section.text),
    things: things(content),
  }));

const byName = <T extends { readonly name: string }>(things: readonly T[]): Map<string, T> =>
  new Map(things.map((thing) => [thing.name, thing]));

/** What one dump says of things that have names: sets, virtual servers, tables, interfaces. */
interface Part<T> {
  readonly file: string;
  readonly line: number;
  /** Of two ways to print the same, the one with more is the more exact. */
  readonly exactness: number;
  readonly things: ReadonlyMap<string, T>;
}

/**
 * The things of several dumps, each from the most exact one that has it; `what` is what one of them
 * is called. Equally exact dumps may not contradict each other.
 */
function unite<T>(
  what: string,
  parts: readonly Part<T>[],
  note: (sentence: string) => void,
  merge: Merge<T> = same,
): ReadonlyMap<string, T> {
  const things = new Map<string, { readonly thing: T; readonly by: Part<T> }>();
  for (const part of [...parts].sort((a, b) => b.exactness - a.exactness)) {
    for (const [name, thing] of part.things) {
      const before = things.get(name);
      if (before === undefined) {
        things.set(name, { thing, by: part });
      } else if (before.by.exactness > part.exactness) {
        note(`${before.by.file} is taken, not ${part.file}, which says the same less exactly.`);
      } else {
        const both = merge(before.thing, thing);
        if (both === undefined) throw contradiction(`${what} ${name}`, before.by, part);
        things.set(name, { thing: both, by: before.by });
      }
    }
  }
  return new Map([...things].map(([name, { thing }]) => [name, thing]));
}

const contradiction = (what: string, first: Part<unknown>, second: Part<unknown>): DumpProblem =>
  new DumpProblem(
    second.file,
    second.line,
    `${what} once, or the same again`,
    `it with something else than in ${first.file}:${first.line}`,
    "give the dumps of one node, taken at one time",
  );

/** Two dumps' words on one thing as one; undefined where they contradict each other. */
type Merge<T> = (first: T, second: T) => T | undefined;

const same: Merge<unknown> & (<T>(first: T, second: T) => T | undefined) = <T>(
  first: T,
  second: T,
) => (written(first) === written(second) ? first : undefined);

/** Line numbers differ from one dump to the next. */
function written(thing: unknown): string {
  return JSON.stringify(thing, (key, value: unknown) => {
    if (key === "line") return undefined;
    if (value instanceof Map) return [...value.entries()];
    return typeof value === "function" ? (value as () => unknown)() : value;
  });
}

/** `nft list chain` and `list set` show a table in pieces. */
const mergeTables: Merge<Table> = (first, second) => {
  const chains = mergeNamed<Chain>(first.chains, second.chains);
  const sets = mergeNamed(first.sets, second.sets);
  return chains === undefined || sets === undefined ? undefined : { ...first, chains, sets };
};

function mergeNamed<T>(
  first: ReadonlyMap<string, T>,
  second: ReadonlyMap<string, T>,
): Map<string, T> | undefined {
  const merged = new Map(first);
  for (const [name, thing] of second) {
    const before = merged.get(name);
    if (before !== undefined && same(before, thing) === undefined) return undefined;
    merged.set(name, before ?? thing);
  }
  return merged;
}

/** `ip -4 addr` and `ip -6 addr` show an interface in pieces, by family. */
const mergeInterfaces: Merge<Interface> = (first, second) => {
  const addresses = [4, 6].map((family) =>
    [first, second].map((each) => addressesOf(each, family)),
  );
  const contradicts = addresses.some(([one, two]) => one !== "" && two !== "" && one !== two);
  if (contradicts) return undefined;
  const more = second.addresses.filter(
    (each) => !first.addresses.some((own) => own.address === each.address),
  );
  return { name: first.name, addresses: [...first.addresses, ...more] };
};

const addressesOf = ({ addresses }: Interface, family: number): string =>
  addresses
    .map(({ address, prefix }) => `${address}/${prefix}`)
    .filter((address) => address.includes(":") === (family === 6))
    .sort()
    .join(" ");

/** What one section of a text turned out to be. */
type Recognised = { readonly file: string; readonly section: Section } & (
  | { readonly kind: "iptables"; readonly content: readonly Iptables[] }
  | { readonly kind: "ipset"; readonly content: IpSets }
  | { readonly kind: "ipvs"; readonly content: VirtualServers }
  | { readonly kind: "nftables"; readonly content: Ruleset }
  | { readonly kind: "addresses"; readonly content: Addresses }
  | { readonly kind: "routes"; readonly content: Routes }
);

const parsers = {
  iptables: parseIptables,
  ipset: parseIpset,
  ipvs: parseIpvs,
  nftables: parseNftables,
  addresses: parseAddresses,
  routes: parseRoutes,
};

const expected =
  "the output of iptables-save, iptables -S or -L, ipset save or list, ipvsadm -Sn or -ln, /proc/net/ip_vs, nft list, ip addr, or ip route";

/** Every dump in a text, recognised by its content; prose around dumps is passed over. */
function recognise(whole: string, file: string): Recognised[] {
  return sectionsOf(whole).flatMap((section) => {
    const { kind, text, firstLine } = section;
    const content = parsers[kind](text, file, firstLine);
    const isEmpty =
      "interfaces" in content
        ? !content.interfaces.some(hasAddress)
        : "length" in content && content.length === 0;
    return isEmpty ? [] : [{ file, section, kind, content } as Recognised];
  });
}

/** `ip link` looks like `ip addr`, and says nothing of addresses. */
const hasAddress = ({ addresses }: Interface): boolean => addresses.length > 0;

/** What else people take of a node; none of it decides where a new connection goes. */
const others: readonly (readonly [string, RegExp])[] = [
  ["ip link", /^\d+: \S+: <[^>]*>/m],
  ["ip rule", /^\d+:\s+from \S/m],
  ["ip neigh", /^[\da-f.:]+ dev \S+ .*(lladdr|FAILED|INCOMPLETE)/m],
  ["conntrack -L", /^(\S+\s+\d+\s+)?[a-z]+\s+\d+ (\d+ )?.*\bsrc=\S+ dst=\S+/m],
  ["sysctl -a", /^\w[\w-]*(\.[\w-]+)+ = /m],
];

/** The command that printed a text which is no dump; null where none is recognised. */
const otherCommand = (text: string): string | null =>
  others.find(([, lines]) => lines.test(text))?.[0] ?? null;

/** Why a text is refused in which no dump was recognised. */
function noDump(text: string, file: string): DumpProblem {
  const lines = text.split("\n");
  const first = lines.findIndex((line) => line.trim() !== "");
  const line = (lines[first] ?? "").trim();
  const shown = JSON.stringify(line.length > 60 ? `${line.slice(0, 60)}…` : line);
  const got = unprintable.test(line) ? "binary data" : shown;
  const fix = "leave the file out, or take the dump again";
  return new DumpProblem(file, first + 1, expected, got, fix);
}

const unprintable = /[^\P{Cc}\t\n\r]|\ufffd/u;

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
