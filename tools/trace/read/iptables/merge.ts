import { DumpProblem } from "../../model/dump";
import type { Chain, Iptables, Table } from "../../model/iptables";

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
export function once(before: Chain, after: Chain, table: string, file: string): Chain {
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
