import { DumpProblem } from "../../model/dump";
import { type Chain, exactness, type Iptables, type Table, tableNames } from "../../model/iptables";
import { statementsOf } from "./rule";
import { inferFamily, inferTable, isListing, type Section, splitListing, splitSave } from "./split";

/**
 * What iptables-save, `iptables -S` or `iptables -L` printed; one for each IP family that is in it.
 */
export function parse(text: string, file: string, firstLine: number): Iptables[] {
  const listing = isListing(text);
  const sections = listing ? splitListing(text, file, firstLine) : splitSave(text, file, firstLine);
  const notes: string[] = [];
  const families = new Map<4 | 6, Map<string, Table>>();
  let family: 4 | 6 | null = null;
  for (const [index, section] of sections.entries()) {
    family =
      inferFamily(section) ??
      section.family ??
      nextFamily(sections, index, families, section.table) ??
      family ??
      4;
    const name = section.table ?? inferTable(section);
    if (name === null) {
      notes.push(
        `${file}:${section.line}: chains ${[...section.chains.keys()].join(", ")} are left out: nothing shows which table they belong to.`,
      );
      continue;
    }
    if (!tableNames.some((known) => known === name)) {
      throw new DumpProblem(file, section.line, `one of the tables ${tableNames.join(", ")}`, name);
    }
    if (section.table === null) {
      notes.push(
        `${file} does not name its tables; table ${name} is inferred from the chains and targets.`,
      );
    }
    const tables = families.get(family) ?? new Map<string, Table>();
    families.set(family, tables);
    tables.set(name, add(tables.get(name), name, section, file));
    checkLast(section, file);
  }
  return [...families].map(([each, tables]) => ({
    file,
    family: each,
    tables,
    exactness: listing ? ofListing(tables) : /^-[PN] /m.test(text) ? exactness.S : exactness.save,
    notes,
  }));
}

/**
 * A table without an address is of the family of the next that has one, and of the other where it
 * is there already.
 */
function nextFamily(
  sections: readonly Section[],
  index: number,
  families: ReadonlyMap<4 | 6, ReadonlyMap<string, Table>>,
  table: string | null,
): 4 | 6 | null {
  const had = (family: 4 | 6): boolean =>
    table !== null && families.get(family)?.get(table)?.whole === true;
  if (had(4) !== had(6)) return had(4) ? 6 : 4;
  if (index > 0) return null;
  return (
    sections
      .map((section) => inferFamily(section) ?? section.family)
      .find((family) => family !== null) ?? null
  );
}

/**
 * A dump that ends in the middle of a rule shows it there; rules before are read when a packet
 * meets them.
 */
function checkLast(section: Section, file: string): void {
  const chain = [...section.chains.values()].filter((each) => each.rules.length > 0).at(-1);
  const rule = chain?.rules.at(-1);
  if (chain !== undefined && rule !== undefined) statementsOf(rule, chain, file);
}

function add(table: Table | undefined, name: string, section: Section, file: string): Table {
  const chains = new Map<string, Chain>(table?.chains ?? []);
  if (table !== undefined && table.whole && section.whole) {
    throw new DumpProblem(
      file,
      section.line,
      `table ${name} once`,
      `a second *${name}`,
      "give one dump of each IP family",
    );
  }
  for (const chain of section.chains.values()) {
    const before = chains.get(chain.name);
    if (before === undefined) chains.set(chain.name, chain);
    else chains.set(chain.name, once(before, chain, name, file));
  }
  const whole = section.whole || (table?.whole ?? false);
  return { name, chains, line: table?.line ?? section.line, whole };
}

function ofListing(tables: ReadonlyMap<string, Table>): number {
  const chains = [...tables.values()].flatMap((table) => [...table.chains.values()]);
  const verbose = chains.every((chain) => chain.columns?.verbose === true);
  const names = chains.some((chain) =>
    chain.rules.some((rule) => /\sanywhere(\s|$)/.test(rule.text)),
  );
  if (verbose) return names ? exactness.vL : exactness.nvL;
  return names ? exactness.L : exactness.nL;
}

/**
 * Several dumps of one family as one: of two that show the same chain the more exact one counts,
 * and a dump that shows a table whole leaves nothing to the others.
 */
export function mergeIptables(dumps: readonly Iptables[]): Iptables | null {
  const [first, ...others] = [...dumps].sort((a, b) => b.exactness - a.exactness);
  if (first === undefined) return null;
  const tables = new Map<string, { table: Table; by: Iptables }>();
  for (const table of first.tables.values()) tables.set(table.name, { table, by: first });
  const notes = new Set(dumps.flatMap((dump) => dump.notes));
  for (const other of others) {
    for (const table of other.tables.values()) {
      const known = tables.get(table.name);
      if (known === undefined) {
        tables.set(table.name, { table, by: other });
        continue;
      }
      if (known.by.exactness === other.exactness && known.table.whole && table.whole) {
        if (known.by.file !== other.file && sameRules(known.table, table)) continue;
        const got = `another one than in ${known.by.file}:${known.table.line}`;
        throw new DumpProblem(
          other.file,
          table.line,
          `table ${table.name} once`,
          got,
          "give the dumps of one node, taken at one time",
        );
      }
      if (known.by.exactness > other.exactness) {
        notes.add(
          `Table ${table.name} is taken from ${known.by.file}, which is more exact than ${other.file}.`,
        );
        if (known.table.whole) continue;
      }
      tables.set(table.name, { table: join(known.table, known.by, table, other), by: known.by });
    }
  }
  return {
    ...first,
    tables: new Map([...tables].map(([name, { table }]) => [name, table])),
    notes: [...notes],
  };
}

function join(known: Table, by: Iptables, other: Table, from: Iptables): Table {
  const chains = new Map<string, Chain>(known.chains);
  for (const chain of other.chains.values()) {
    const before = chains.get(chain.name);
    if (before === undefined) chains.set(chain.name, chain);
    else if (by.exactness === from.exactness)
      chains.set(chain.name, once(before, chain, known.name, from.file));
  }
  return { ...known, chains, whole: known.whole || other.whole };
}

/** People paste a chain more than once; that says nothing new unless the rules differ. */
function once(before: Chain, after: Chain, table: string, file: string): Chain {
  if (after.rules.length === 0) return { ...before, policy: before.policy ?? after.policy };
  if (before.rules.length === 0) return { ...after, policy: before.policy ?? after.policy };
  if (before === after || rulesOf(before) === rulesOf(after)) return before;
  const fix = "it cannot be decided which one holds: leave one of them out";
  throw new DumpProblem(
    file,
    after.rules[0]!.line,
    `chain ${after.name} of table ${table} once`,
    "it again with other rules",
    fix,
  );
}

function sameRules(one: Table, other: Table): boolean {
  const chains = [...one.chains.values()];
  return (
    one.chains.size === other.chains.size &&
    chains.every((chain) => {
      const same = other.chains.get(chain.name);
      return same !== undefined && same.policy === chain.policy && rulesOf(same) === rulesOf(chain);
    })
  );
}

/** Without the counters, which go on between two dumps. */
function rulesOf(chain: Chain): string {
  const rules = chain.rules.map((rule) =>
    chain.columns?.verbose === true ? rule.text.replace(/^\s*\S+\s+\S+\s+/, "") : rule.text,
  );
  return rules.map((rule) => rule.trim().replace(/\s+/g, " ")).join("\n");
}
