import { DumpProblem } from "../../model/dump";
import { builtIn, type Columns } from "../../model/iptables";
import type { DraftChain, Section } from "./section";

const title = /^\s*Chain (\S+) \((?:policy (\w+)(?: [^)]*)?|[-\d]+ references?)\)/;

const head =
  /^\s*(num\s+)?(pkts\s+bytes\s+)?target\s+prot\s+opt\s+(in\s+out\s+)?source\s+destination/;

const anyBuiltIn = new Set(Object.values(builtIn).flat());

export function isListing(text: string): boolean {
  return text.split("\n").some((line) => title.test(line));
}

/**
 * `iptables -L` in each of its forms, also pasted with bullets and blank lines, as runs of chains
 * of one table each.
 */
export function splitListing(text: string, file: string, firstLine: number): Section[] {
  const sections: Section[] = [];
  let section: Section | null = null;
  let chain: DraftChain | null = null;
  let policy: string | null = null;
  let name: string | null = null;
  let line = firstLine - 1;
  for (const raw of text.split("\n")) {
    line += 1;
    const at = raw.replace(/^\s*[•*·]\s+/, "").trimEnd();
    if (at.trim() === "") continue;
    const titled = title.exec(at);
    if (titled !== null) {
      expectHead(name, chain, file, line, at);
      [name, policy, chain] = [titled[1]!, titled[2] ?? null, null];
      continue;
    }
    const headed = head.exec(at);
    if (headed !== null) {
      if (name === null)
        throw new DumpProblem(file, line, "`Chain NAME (…)` before the columns", at.trim());
      const columns: Columns = {
        verbose: headed[3] !== undefined,
        numbered: headed[1] !== undefined,
      };
      chain = { name, policy, rules: [], columns };
      if (section === null || section.chains.has(name) || startsAnother(section, name)) {
        section = { table: null, family: null, whole: false, line, chains: new Map() };
        sections.push(section);
      }
      section.chains.set(name, chain);
      continue;
    }
    if (chain === null) {
      throw new DumpProblem(
        file,
        line,
        name === null ? "`Chain NAME (…)`" : "the line `target prot opt source destination`",
        at.trim(),
      );
    }
    chain.rules.push({ text: at.trim() === at ? at : keepEmptyTarget(at), line });
  }
  expectHead(name, chain, file, line, "");
  return sections;
}

function expectHead(
  name: string | null,
  chain: DraftChain | null,
  file: string,
  line: number,
  got: string,
): void {
  if (name === null || chain !== null) return;
  throw new DumpProblem(
    file,
    line,
    `the columns of chain ${name}`,
    got,
    "the listing is cut off: take it again",
  );
}

/** A listing of a whole table begins with the chains that are built in. */
function startsAnother(section: Section, name: string): boolean {
  return anyBuiltIn.has(name) && [...section.chains.keys()].some((other) => !anyBuiltIn.has(other));
}

/** A rule without a target leaves its column blank; one space keeps that visible. */
function keepEmptyTarget(text: string): string {
  return /^\s{8,}/.test(text) ? ` ${text.trim()}` : text.trim();
}
