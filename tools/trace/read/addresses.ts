import { type Addresses, DumpProblem, type Interface } from "../model/dump";
import { canonical } from "../model/range";

interface Draft extends Interface {
  readonly addresses: { readonly address: string; readonly prefix: number }[];
}

const header = /^\s*\d+:\s+([^\s:@]+)(@\S+)?:\s+<[^>]*>/;

const one = /^\s*\d+:\s+([^\s:@]+)(@\S+)?\s+inet6?\s/;

const brief = /^([^\s@]+)(@\S+)?\s+(UP|DOWN|UNKNOWN|LOWERLAYERDOWN|DORMANT)\b(.*)$/;

const inet = /\binet6?\s+([0-9a-fA-F.:]+)(\/(\d+))?(\s+peer\s+([0-9a-fA-F.:]+)\/(\d+))?/;

/** `ip addr` in each of its forms: plain, `-o`, `-br`, `-j`. */
export function parse(text: string, file: string, firstLine: number): Addresses {
  if (text.trimStart().startsWith("[")) return fromJson(text, file, firstLine);
  const interfaces = new Map<string, Draft>();
  const named = (name: string): Draft => {
    const draft = interfaces.get(name) ?? { name, addresses: [] };
    interfaces.set(name, draft);
    return draft;
  };
  let current: Draft | null = null;
  text.split("\n").forEach((line, index) => {
    const at = firstLine + index;
    const short = brief.exec(line);
    if (short !== null) {
      for (const word of short[4]!
        .trim()
        .split(/\s+/)
        .filter((each) => /[.:]\w*.*\//.test(each))) {
        const [address, prefix] = word.split("/");
        named(short[1]!).addresses.push(read(address!, prefix, file, at));
      }
      named(short[1]!);
      return;
    }
    const head = header.exec(line) ?? one.exec(line);
    if (head !== null) current = named(head[1]!);
    const found = inet.exec(line);
    if (found === null) return;
    if (current === null) {
      throw new DumpProblem(
        file,
        at,
        "a line that names an interface before its addresses",
        line.trim(),
      );
    }
    current.addresses.push(read(found[1]!, found[3] ?? found[6], file, at));
  });
  return { file, interfaces: [...interfaces.values()] };
}

function read(text: string, prefix: string | undefined, file: string, line: number) {
  const address = canonical(text);
  if (address === null) throw new DumpProblem(file, line, "an address such as 10.0.0.1/24", text);
  return { address, prefix: prefix === undefined ? (address.includes(":") ? 128 : 32) : +prefix };
}

function fromJson(text: string, file: string, firstLine: number): Addresses {
  let rows: unknown;
  try {
    rows = JSON.parse(text);
  } catch (error) {
    const got = error instanceof Error ? error.message : String(error);
    throw new DumpProblem(file, firstLine, "the whole JSON of `ip -j addr`", got);
  }
  const list = (value: unknown): Record<string, unknown>[] =>
    Array.isArray(value) ? value.filter((each) => typeof each === "object" && each !== null) : [];
  return {
    file,
    interfaces: list(rows)
      .filter((row) => typeof row["ifname"] === "string")
      .map((row) => ({
        name: String(row["ifname"]),
        addresses: list(row["addr_info"])
          .filter((info) => typeof info["local"] === "string")
          .map((info) =>
            read(
              String(info["local"]),
              info["prefixlen"] === undefined ? undefined : String(info["prefixlen"]),
              file,
              firstLine,
            ),
          ),
      })),
  };
}
