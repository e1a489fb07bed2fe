import { DumpProblem } from "../../model/dump";

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

/** JSON as `nft -j` prints it. */
type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

type Fields = { readonly [key: string]: Json };

/** The one name and content of an object such as `{"meta": {"key": "mark"}}`. */
function only(value: Json | undefined): readonly [string, Json] {
  return Object.entries(asFields(value))[0] ?? ["", null];
}

function asFields(value: Json | undefined): Fields {
  return value !== null && typeof value === "object" && !Array.isArray(value)
    ? (value as Fields)
    : {};
}

function asList(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : value === undefined ? [] : [value];
}

/** The statements of a rule as `nft list` prints them. */
function textOfRule(statements: readonly Json[], comment: Json | undefined): string {
  const noted = comment === undefined ? undefined : `comment ${textOf(comment, "quoted")}`;
  return words(...statements.map(textOfStatement), noted);
}

/** Those that are there, with blanks between. */
const words = (...parts: readonly (Json | undefined)[]): string =>
  parts
    .filter((part) => part !== undefined && part !== "")
    .map(String)
    .join(" ");

function textOfStatement(statement: Json): string {
  const [kind, content] = only(statement);
  const fields = typeof content === "string" ? { name: content } : asFields(content);
  const { key, data, elem, name } = fields;
  const over = fields.inv === true ? "over" : undefined;
  switch (kind) {
    case "match":
      return textOfMatch(fields);
    case "vmap":
      return words(textOf(key), kind, textOf(data, styleOf(key)));
    case "mangle":
      return words(textOf(key), "set", textOf(fields.value, styleOf(key)));
    case "dnat":
    case "snat":
    case "redirect":
    case "masquerade":
    case "tproxy":
      return textOfNat(kind, fields);
    case "reject":
      return textOfReject(fields);
    case "set":
    case "map":
      return words(fields.op, fields[kind], "{", textOf(elem), data && `: ${textOf(data)}`, "}");
    case "meter":
      return words(kind, name, "{", textOf(key), "}");
    case "xt":
      return words(kind, fields.type, textOf(name, "quoted"));
    case "limit":
      return words(kind, "rate", over, `${String(fields.rate)}/${String(fields.per)}`);
    case "quota":
    case "ct count":
      return words(kind, over, fields.val, fields.val_unit, name);
    case "ct helper":
    case "ct timeout":
    case "ct expectation":
      return words(kind, "set", name);
    case "dup":
      return words(kind, "to", textOf(fields.addr), fields.dev && `device ${textOf(fields.dev)}`);
    case "flow":
      return words(kind, fields.op, fields.flowtable);
    case "jump":
    case "goto":
      return words(kind, fields.target);
    default:
      // `log prefix "x" level info`, `counter packets 0 bytes 0`, `counter name x`, `accept`.
      return words(
        kind,
        ...Object.entries(fields).flatMap(([word, value]) => [word, textOf(value)]),
      );
  }
}

/** What has no words of its own stays JSON, and is not understood. */
const raw = (value: Json): string => JSON.stringify(value).replaceAll('\\"', "'");

function textOfMatch({ op, left, right }: Fields): string {
  const { fib, exthdr, "&": bits } = asFields(left);
  if ((fib ?? exthdr) !== undefined && typeof right === "boolean")
    return words(textOf(left), right ? "exists" : "missing");
  const implied = (op === "==" || op === "in") && bits === undefined;
  return words(textOf(left), implied ? undefined : op, textOf(right, styleOf(left)));
}

function textOfNat(kind: string, { family, addr, port, flags }: Fields): string {
  const address = textOf(addr);
  const bracketed = port !== undefined && /^[0-9a-f:]*:[0-9a-f:.]*$/i.test(address);
  const to =
    (bracketed ? `[${address}]` : address) + (port === undefined ? "" : `:${textOf(port)}`);
  return words(kind, family, to && `to ${to}`, textOf(flags));
}

const textOfReject = ({ type, expr }: Fields): string =>
  type === undefined || expr === "port-unreachable" ? "reject" : words("reject with", type, expr);

/** How values are written beside a selector: marks in hexadecimal, names and times in quotes. */
type Style = "plain" | "mark" | "quoted";

/** From the loosest to the tightest. */
const operators = ["|", "^", "&", "<<", ">>"];

function styleOf(selector: Json | undefined): Style {
  const [kind, content] = only(selector);
  if (operators.includes(kind)) return styleOf(asList(content)[0]);
  const { key } = asFields(content);
  if (key === "mark") return "mark";
  const quoted = /^([io]if(name|group)?|time|hour|day|sk[ug]id)$/;
  return kind === "meta" && quoted.test(String(key)) ? "quoted" : "plain";
}

/** An expression, a value or a verdict. */
function textOf(value: Json | undefined, style: Style = "plain"): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") {
    const quoted = (style === "quoted" && !/^[@*]/.test(value)) || /[\s{}();,#"]/.test(value);
    return quoted ? `"${value.replace(/["\n]/g, " ")}"` : value;
  }
  if (typeof value === "number" && style === "mark")
    return `0x${value.toString(16).padStart(8, "0")}`;
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value))
    return asList(value)
      .map((part) => textOf(part, style))
      .join(",");
  const [kind, content] = only(value);
  const fields = asFields(content);
  const parts = asList(content);
  if (operators.includes(kind)) return textOfBinary(kind, parts, styleOf(value));
  switch (kind) {
    case "payload":
      return fields.protocol === undefined
        ? `@${[fields.base, fields.offset, fields.len].join(",")}`
        : words(fields.protocol, fields.field);
    case "meta":
      return words(/^[io]if(name)?$/.test(String(fields.key)) ? undefined : kind, fields.key);
    case "ct":
    case "rt":
    case "socket":
    case "exthdr":
      return words(kind, fields.dir, fields.family, fields.key ?? fields.name);
    case "fib":
      return words(kind, asList(fields.flags).join(" . "), fields.result);
    case "concat":
      return parts.map((part) => textOf(part)).join(" . ");
    case "prefix":
      return `${textOf(fields.addr)}/${String(fields.len)}`;
    case "range":
      return parts.map((part) => textOf(part, style)).join("-");
    case "set":
      return textOfElements(parts, style, "plain");
    case "map": {
      const { set } = asFields(fields.data);
      const data =
        set === undefined
          ? textOf(fields.data)
          : textOfElements(asList(set), styleOf(fields.key), style);
      return words(textOf(fields.key), "map", data);
    }
    case "elem":
      return textOf(fields.val, style);
    case "numgen":
    case "jhash":
    case "symhash": {
      const offset = fields.offset === 0 ? undefined : fields.offset;
      return words(
        kind,
        fields.mode,
        textOf(fields.expr),
        "mod",
        fields.mod,
        offset && `offset ${offset}`,
      );
    }
    case "jump":
    case "goto":
      return words(kind, fields.target);
    default:
      return content === null ? kind : raw(value);
  }
}

const textOfBinary = (op: string, parts: readonly Json[], style: Style): string =>
  parts
    .map((part) => {
      if (Array.isArray(part)) return `(${part.join(" | ")})`;
      const inner = operators.indexOf(only(part)[0]);
      const text = textOf(part, style);
      return inner >= 0 && inner < operators.indexOf(op) ? `(${text})` : text;
    })
    .join(` ${op} `);

/** Of a set, or of a map whose values have a style of their own. */
const textOfElements = (elements: readonly Json[], ofKeys: Style, ofValues: Style): string =>
  `{ ${elements
    .map((element) =>
      asList(element)
        .map((part, at) => textOf(part, at === 0 ? ofKeys : ofValues))
        .join(" : "),
    )
    .join(", ")} }`;
