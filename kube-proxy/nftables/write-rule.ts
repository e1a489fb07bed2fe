import type { Fields, Json } from "./json";
import { asFields, only } from "./json";
import { mannerOf, writeExpression } from "./write-expression";

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
