import { readFileSync } from "node:fs";

import { messageOf, UserError } from "../../shared/user-error";
import { destination, origin, type Packet, source } from "../model/packet";

const keys = ["from", "source", "to"];

const example = '{"from":"pod","source":"10.0.0.2","to":"172.30.0.41:80/tcp"}';

/** One query a line; every line is looked at before any is answered. */
export function readBatch(file: string): Packet[] {
  return textOf(file)
    .split("\n")
    .flatMap((line, index) => {
      if (line.trim() === "") return [];
      try {
        return [packet(line)];
      } catch (error) {
        throw new UserError(`${file}: line ${index + 1}: ${messageOf(error)}`, 2);
      }
    });
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UserError(`batch: expected a file of queries, got ${messageOf(error)}`, 2);
  }
}

function packet(line: string): Packet {
  const { from = "pod", source: address = null, to } = query(line);
  const wanted = destination(word("to", to));
  return {
    from: origin(word("from", from)),
    source: address === null ? null : source(word("source", address), wanted),
    ...wanted,
  };
}

function query(line: string): Record<string, unknown> {
  const parsed = parse(line);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new Error(`expected one query as JSON, such as ${example}, got ${shortened(line)}`);
  }
  const unknown = Object.keys(parsed).find((key) => !keys.includes(key));
  if (unknown !== undefined) {
    throw new Error(
      `expected nothing but ${keys.join(", ")}, such as ${example}, got "${unknown}"`,
    );
  }
  return parsed as Record<string, unknown>;
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function word(key: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw new Error(`${key}: expected text, such as in ${example}, got ${JSON.stringify(value)}`);
}

const shortened = (line: string): string =>
  line.length > 80 ? `${line.trim().slice(0, 80)}…` : line.trim();
