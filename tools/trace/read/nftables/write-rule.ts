/** JSON as `nft -j` prints it. */
export type Json =
  null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export type Fields = { readonly [key: string]: Json };

/** The one name and content of an object such as `{"meta": {"key": "mark"}}`. */
function only(value: Json): readonly [string, Json] {
  return Object.entries(asFields(value))[0] ?? ["", null];
}

export function asFields(value: Json | undefined): Fields {
  return value !== null && typeof value === "object" && !Array.isArray(value)
    ? (value as Fields)
    : {};
}

export function asList(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : value === undefined ? [] : [value];
}

/** The statements of a rule in JSON, in the words that `nft list` has for them. */
export function writeRule(statements: readonly Json[], comment: Json | undefined): string {
  const words = statements.map(writeStatement);
  if (typeof comment === "string") words.push(`comment "${comment}"`);
  return words.join(" ");
}

function writeStatement(statement: Json): string {
  if (typeof statement === "string") return statement;
  const [kind, content] = only(statement);
  const fields = asFields(content);
  switch (kind) {
    case "match":
      return writeMatch(fields);
    case "vmap":
      return `${writeExpression(fields.key)} vmap ${writeExpression(fields.data, mannerOf(fields.key))}`;
    case "jump":
    case "goto":
      return `${kind} ${String(fields.target)}`;
    case "mangle":
      return `${writeExpression(fields.key)} set ${writeExpression(fields.value, mannerOf(fields.key))}`;
    case "dnat":
    case "snat":
    case "redirect":
    case "masquerade":
    case "tproxy":
      return writeNat(kind, fields);
    case "reject":
      return writeReject(fields);
    case "set":
      return `${String(fields.op)} ${writeExpression(fields.set)} { ${writeExpression(fields.elem)} }`;
    case "map":
      return `${String(fields.op)} ${writeExpression(fields.map)} { ${writeExpression(fields.elem)} : ${writeExpression(fields.data)} }`;
    case "limit":
      return `limit rate ${fields.inv === true ? "over " : ""}${String(fields.rate)}/${String(fields.per)}`;
    case "counter":
    case "quota":
      return typeof content === "string" ? `${kind} name "${content}"` : writeMeasure(kind, fields);
    case "meter":
      return `meter ${String(fields.name)} { ${writeExpression(fields.key)} }`;
    case "ct count":
      return `ct count ${fields.inv === true ? "over " : ""}${String(fields.val)}`;
    case "xt":
      return `xt ${String(fields.type)} "${String(fields.name)}"`;
    case "log":
      return typeof fields.prefix === "string" ? `log prefix "${fields.prefix}"` : "log";
    default:
      return content === null || kind === "synproxy" ? kind : `${kind} ${JSON.stringify(content)}`;
  }
}

function writeMeasure(kind: string, fields: Fields): string {
  if (kind === "quota") {
    return `quota ${fields.inv === true ? "over " : ""}${String(fields.val)} ${String(fields.val_unit)}`;
  }
  if (fields.packets === undefined) return "counter";
  return `counter packets ${String(fields.packets)} bytes ${String(fields.bytes)}`;
}

function writeMatch({ op, left, right }: Fields): string {
  const ofPresence = asFields(left).fib ?? asFields(left).exthdr;
  if (ofPresence !== undefined && typeof right === "boolean") {
    return `${writeExpression(left)} ${right ? "exists" : "missing"}`;
  }
  const implied = (op === "==" || op === "in") && asFields(left)["&"] === undefined;
  return `${writeExpression(left)} ${implied ? "" : `${String(op)} `}${writeExpression(right, mannerOf(left))}`;
}

function writeNat(kind: string, fields: Fields): string {
  const words = [kind];
  if (typeof fields.family === "string") words.push(fields.family);
  const address = fields.addr === undefined ? "" : writeExpression(fields.addr);
  const port = fields.port === undefined ? "" : `:${writeExpression(fields.port)}`;
  const bracketed = port !== "" && /^[0-9a-f:]*:[0-9a-f:.]*$/i.test(address);
  if (address + port !== "") words.push("to", (bracketed ? `[${address}]` : address) + port);
  if (fields.flags !== undefined) words.push(writeExpression(fields.flags));
  return words.join(" ");
}

function writeReject({ type, expr }: Fields): string {
  if (type === undefined || expr === "port-unreachable") return "reject";
  return `reject with ${String(type)}${expr === undefined ? "" : ` ${String(expr)}`}`;
}

/** How values are written beside a selector: marks in hexadecimal, names and times in quotes. */
export type Manner = "plain" | "mark" | "quoted";

/** From the loosest to the tightest. */
const signs = ["|", "^", "&", "<<", ">>"];

function mannerOf(selector: Json | undefined): Manner {
  if (selector === undefined || selector === null || typeof selector !== "object") return "plain";
  const [kind, content] = only(selector);
  if (signs.includes(kind)) return mannerOf(asList(content)[0]);
  const key = String(asFields(content).key);
  if (key === "mark") return "mark";
  return kind === "meta" && /^([io]if(name|group)?|time|hour|day|skuid|skgid|[io]ifname)$/.test(key)
    ? "quoted"
    : "plain";
}

/** An expression or a value; what has no words of its own stays JSON, and is not understood. */
export function writeExpression(value: Json | undefined, manner: Manner = "plain"): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string")
    return manner === "quoted" && !/^[@*]/.test(value) ? `"${value}"` : value;
  if (typeof value === "number" && manner === "mark")
    return `0x${value.toString(16).padStart(8, "0")}`;
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value))
    return (value as readonly Json[]).map((part) => writeExpression(part, manner)).join(",");
  const [kind, content] = only(value);
  const fields = asFields(content);
  const parts = Array.isArray(content) ? (content as readonly Json[]) : [];
  if (signs.includes(kind)) return writeBinary(kind, parts, value);
  switch (kind) {
    case "payload":
      return fields.protocol === undefined
        ? `@${String(fields.base)},${String(fields.offset)},${String(fields.len)}`
        : `${String(fields.protocol)} ${String(fields.field)}`;
    case "meta":
      return /^([io]if(name)?)$/.test(String(fields.key))
        ? String(fields.key)
        : `meta ${String(fields.key)}`;
    case "ct":
    case "rt":
      return [kind, fields.dir, fields.family, fields.key]
        .filter((word) => word !== undefined)
        .map(String)
        .join(" ");
    case "fib":
      return `fib ${asList(fields.flags).map(String).join(" . ")} ${String(fields.result)}`;
    case "concat":
      return parts.map((part) => writeExpression(part)).join(" . ");
    case "prefix":
      return `${writeExpression(fields.addr)}/${String(fields.len)}`;
    case "range":
      return parts.map((part) => writeExpression(part, manner)).join("-");
    case "set":
      return `{ ${asList(content)
        .map((element) => writeElement(element, manner, "plain"))
        .join(", ")} }`;
    case "map":
      return `${writeExpression(fields.key)} map ${writeMap(fields.data, mannerOf(fields.key), manner)}`;
    case "elem":
      return writeExpression(fields.val, manner);
    case "numgen":
      return `numgen ${String(fields.mode)} mod ${String(fields.mod)}${writeOffset(fields)}`;
    case "jhash":
      return `jhash ${writeExpression(fields.expr)} mod ${String(fields.mod)}${writeOffset(fields)}`;
    case "symhash":
      return `symhash mod ${String(fields.mod)}${writeOffset(fields)}`;
    case "exthdr":
      return `exthdr ${String(fields.name)}`;
    case "socket":
      return `socket ${String(fields.key)}`;
    default:
      return JSON.stringify(value);
  }
}

function writeBinary(sign: string, parts: readonly Json[], whole: Json): string {
  const manner = mannerOf(whole);
  return parts
    .map((part) => {
      if (Array.isArray(part)) return `(${(part as readonly Json[]).map(String).join(" | ")})`;
      const text = writeExpression(part, manner);
      const inner = signs.indexOf(part !== null && typeof part === "object" ? only(part)[0] : "");
      return inner >= 0 && inner < signs.indexOf(sign) ? `(${text})` : text;
    })
    .join(` ${sign} `);
}

function writeOffset(fields: Fields): string {
  return fields.offset === undefined || fields.offset === 0
    ? ""
    : ` offset ${String(fields.offset)}`;
}

function writeMap(data: Json | undefined, ofKeys: Manner, ofValues: Manner): string {
  const elements = asFields(data).set;
  if (elements === undefined) return writeExpression(data);
  return `{ ${asList(elements)
    .map((element) => writeElement(element, ofKeys, ofValues))
    .join(", ")} }`;
}

function writeElement(element: Json, ofKey: Manner, ofValue: Manner): string {
  if (!Array.isArray(element)) return writeExpression(element, ofKey);
  const [key, value] = element as readonly Json[];
  return `${writeExpression(key, ofKey)} : ${writeValue(value!, ofValue)}`;
}

/** The value of a map's element: a verdict, or data. */
export function writeValue(value: Json, manner: Manner = "plain"): string {
  const [kind, content] = only(value);
  if (kind === "jump" || kind === "goto") return `${kind} ${String(asFields(content).target)}`;
  return /^(accept|drop|continue|return)$/.test(kind) ? kind : writeExpression(value, manner);
}
