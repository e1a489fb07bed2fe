import { asFields, asList, only } from "./json";
import type { Fields, Json } from "./json";

/** How values are written beside a selector: marks in hexadecimal, names and times in quotes. */
export type Manner = "plain" | "mark" | "quoted";

/** From the loosest to the tightest. */
const signs = ["|", "^", "&", "<<", ">>"];

export function mannerOf(selector: Json | undefined): Manner {
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
