import { DumpProblem } from "../../model/dump";
import {
  type Base,
  type Chain,
  type Element,
  looksLikeIptables,
  type NamedSet,
  type Ruleset,
  type Table,
} from "../../model/nftables";
import type { Rule } from "../../model/statement";
import { readText, twice } from "./text";
import {
  asFields,
  asList,
  type Fields,
  type Json,
  writeExpression,
  writeRule,
  writeValue,
} from "./write-rule";

/** Throws a DumpProblem where a listing is cut off or contradicts itself. */
export function parse(text: string, file: string, firstLine: number): Ruleset {
  return /^\s*\{/.test(text) ? readJson(text, file, firstLine) : readText(text, file, firstLine);
}

interface Draft {
  family: string;
  name: string;
  dormant: boolean;
  readonly chains: Map<string, Chain & { readonly rules: Rule[] }>;
  readonly sets: Map<string, NamedSet>;
}

/** What `nft -j list ruleset` and its kin print. */
function readJson(text: string, file: string, firstLine: number): Ruleset {
  const drafts = new Map<string, Draft>();
  const known = new Set<string>();
  const draft = (fields: Fields, name: Json | undefined): Draft => {
    const key = `${String(fields.family)} ${String(name)}`;
    let found = drafts.get(key);
    if (found === undefined) {
      found = {
        family: String(fields.family),
        name: String(name),
        dormant: false,
        chains: new Map(),
        sets: new Map(),
      };
      drafts.set(key, found);
    }
    return found;
  };
  const once = (what: string): void => {
    if (known.has(what)) throw twice(file, firstLine, what, firstLine);
    known.add(what);
  };
  for (const object of listed(text, file, firstLine)) {
    const [kind = "", content] = Object.entries(asFields(object))[0] ?? [];
    const fields = asFields(content);
    const place = `${String(fields.family)} ${String(fields.table)}`;
    if (kind === "table") {
      once(`table ${String(fields.family)} ${String(fields.name)}`);
      // nft 1.0 cuts the first letters of the flag's name down.
      draft(fields, fields.name).dormant = asList(fields.flags).some((flag) =>
        String(flag).startsWith("dorm"),
      );
    } else if (kind === "chain") {
      once(`chain ${String(fields.name)} in table ${place}`);
      const name = String(fields.name);
      draft(fields, fields.table).chains.set(name, {
        name,
        line: firstLine,
        base: readBase(fields),
        rules: [],
      });
    } else if (kind === "set" || kind === "map") {
      once(`${kind} ${String(fields.name)} in table ${place}`);
      draft(fields, fields.table).sets.set(
        String(fields.name),
        readSet(fields, kind === "map", firstLine),
      );
    } else if (kind === "rule") {
      const chain = draft(fields, fields.table).chains.get(String(fields.chain));
      if (chain === undefined) {
        throw new DumpProblem(
          file,
          firstLine,
          `chain ${String(fields.chain)} in table ${place} before its rules`,
          `a rule of it with handle ${String(fields.handle)}`,
        );
      }
      chain.rules.push(new JsonRule(asList(fields.expr), fields.comment, firstLine));
    }
  }
  const tables = new Map<string, Table>();
  for (const [key, { family, name, dormant, chains, sets }] of drafts) {
    const ofIptables = looksLikeIptables(family, name, chains.values());
    tables.set(key, { family, name, line: firstLine, dormant, ofIptables, chains, sets });
  }
  return { file, format: "json", tables };
}

/** Written in nft's words at the first use. */
class JsonRule implements Rule {
  private written: string | null = null;

  constructor(
    private readonly statements: readonly Json[],
    private readonly comment: Json | undefined,
    readonly line: number,
  ) {}

  get text(): string {
    return (this.written ??= writeRule(this.statements, this.comment));
  }
}

function listed(text: string, file: string, firstLine: number): readonly Json[] {
  let parsed: Json;
  try {
    parsed = JSON.parse(text) as Json;
  } catch (error) {
    const at = /position (\d+)/.exec(String(error));
    const end = at === null ? text.trimEnd().length : Number(at[1]);
    const line = firstLine + (text.slice(0, end).match(/\n/g)?.length ?? 0);
    const got =
      end >= text.trimEnd().length
        ? "the end of the text"
        : text.slice(end, end + 40).split("\n")[0]!;
    throw new DumpProblem(
      file,
      line,
      "the whole JSON of `nft -j list ruleset`",
      got,
      "take it again, whole",
    );
  }
  const list = asFields(parsed).nftables;
  if (!Array.isArray(list)) {
    throw new DumpProblem(file, firstLine, '{"nftables": [...]}', text.slice(0, 40));
  }
  return list as readonly Json[];
}

function readBase(fields: Fields): Base | null {
  if (fields.hook === undefined) return null;
  return {
    type: String(fields.type),
    hook: String(fields.hook),
    priority: Number(fields.prio ?? 0),
    policy: fields.policy === "drop" ? "drop" : "accept",
  };
}

function readSet(fields: Fields, map: boolean, line: number): NamedSet {
  let elements: readonly Element[] | null = null;
  const read = (): readonly Element[] =>
    asList(fields.elem).map((element) => readElement(element, map));
  return {
    name: String(fields.name),
    line,
    timeoutSeconds: typeof fields.timeout === "number" ? fields.timeout : null,
    elements: () => (elements ??= read()),
  };
}

function readElement(element: Json, map: boolean): Element {
  const [left, value] = map ? (element as readonly Json[]) : [element];
  const wrapped = asFields(asFields(left).elem);
  const key = wrapped.val ?? left!;
  const parts = asFields(key).concat;
  return {
    key:
      parts === undefined
        ? [writeExpression(key)]
        : asList(parts).map((part) => writeExpression(part)),
    value: map && value !== undefined ? writeValue(value) : null,
    comment: typeof wrapped.comment === "string" ? wrapped.comment : null,
  };
}
