import { DumpProblem } from "../../model/dump";
import { asFields, asList, type Fields, type Json, textOf, textOfRule } from "./json-rule";

/** What `nft -j` prints, as nft prints the same without it, in one line. */
export function fromJson(json: string, file: string, line: number): string {
  const tables: Block[] = [];
  const chains = new Map<string, Block>();
  const tableOf = (fields: Fields): Block => {
    const head = `table ${String(fields.family)} ${String(fields.table)}`;
    const known = tables.find((table) => table.head === head);
    // `nft -j list chain` shows no table.
    return known ?? tables[tables.push(blockOf(head)) - 1]!;
  };
  for (const object of listed(json, file, line)) {
    const [kind, content] = Object.entries(asFields(object))[0] ?? [];
    const fields = asFields(content);
    const name = String(fields.name);
    if (kind === "table") {
      // nft 1.0 cuts the first letters of the flag's name down.
      const isDormant = asList(fields.flags).some((flag) => String(flag).startsWith("dorm"));
      const head = `table ${String(fields.family)} ${name}`;
      tables.push(blockOf(head, isDormant ? ["flags dormant"] : []));
    } else if (kind === "chain") {
      const [table, chain] = [tableOf(fields), blockOf(`chain ${name}`, baseOf(fields))];
      table.body.push(chain);
      chains.set(`${table.head} ${name}`, chain);
    } else if (kind === "set" || kind === "map") {
      tableOf(fields).body.push(setOf(kind, fields));
    } else if (kind === "rule") {
      const { head } = tableOf(fields);
      const chain = chains.get(`${head} ${String(fields.chain)}`);
      if (chain === undefined) {
        throw new DumpProblem(
          file,
          line,
          `chain ${String(fields.chain)} in ${head} before its rules`,
          `a rule of it with handle ${String(fields.handle)}`,
        );
      }
      chain.body.push(textOfRule(asList(fields.expr), fields.comment));
    }
  }
  return tables.map(written).join(" ");
}

interface Block {
  readonly head: string;
  readonly body: (string | Block)[];
}

const blockOf = (head: string, body: readonly string[] = []): Block => ({ head, body: [...body] });

const written = (part: string | Block): string =>
  typeof part === "string" ? part : `${part.head} { ${part.body.map(written).join("; ")} }`;

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

const baseOf = ({ type, hook, prio, policy }: Fields): string[] =>
  hook === undefined
    ? []
    : [
        `type ${String(type)} hook ${String(hook)} priority ${String(prio ?? 0)}`,
        `policy ${policy === "drop" ? "drop" : "accept"}`,
      ];

function setOf(kind: "set" | "map", { name, timeout, elem }: Fields): Block {
  const elements = asList(elem).map((element) => {
    const [key, value] = kind === "map" ? asList(element) : [element];
    const { comment } = asFields(asFields(key).elem);
    const noted = comment === undefined ? "" : ` comment ${textOf(comment, "quoted")}`;
    return `${textOf(key)}${noted}${value === undefined ? "" : ` : ${textOf(value)}`}`;
  });
  return blockOf(`${kind} ${String(name)}`, [
    ...(timeout === undefined ? [] : [`timeout ${String(timeout)}`]),
    ...(elements.length === 0 ? [] : [`elements = { ${elements.join(", ")} }`]),
  ]);
}
