import {
  type Addresses,
  DumpProblem,
  type Interface,
  type Route,
  type Routes,
} from "../model/dump";
import { canonical, rangeOf } from "../model/packet";

interface Draft extends Interface {
  readonly addresses: { readonly address: string; readonly prefix: number }[];
}

const header = /^\s*\d+:\s+([^\s:@]+)(@\S+)?:\s+<[^>]*>/;

const one = /^\s*\d+:\s+([^\s:@]+)(@\S+)?\s+inet6?\s/;

const brief = /^([^\s@]+)(@\S+)?\s+(UP|DOWN|UNKNOWN|LOWERLAYERDOWN|DORMANT)\b(.*)$/;

const inet = /\binet6?\s+([0-9a-fA-F.:]+)(\/(\d+))?(\s+peer\s+([0-9a-fA-F.:]+)\/(\d+))?/;

/** `ip addr` in each of its forms: plain, `-o`, `-br`, `-j`. */
export function parseAddresses(text: string, file: string, firstLine: number): Addresses {
  if (text.trimStart().startsWith("[")) return addressesFromJson(text, file, firstLine);
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

function addressesFromJson(text: string, file: string, firstLine: number): Addresses {
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

const types = "unicast|local|broadcast|multicast|anycast|blackhole|unreachable|prohibit|throw";

const neighbour = /\b(lladdr|FAILED|INCOMPLETE|REACHABLE|STALE|DELAY|PROBE|NOARP|PERMANENT)\b/;

const beginning = new RegExp(
  String.raw`^\s*(?:(${types})\s+)?(default|[\da-f]*[.:][\da-f.:]*(?:/\d+)?)\s+(?:via|dev|proto|scope|metric|nhid)\s`,
);

const nextHop = /^\s*nexthop\s/;

/** Whether a line is of `ip route`; `next` is the one behind it. */
export const isRoute = (line: string, next = ""): boolean =>
  (beginning.test(line) && !neighbour.test(line)) ||
  nextHop.test(line) ||
  (/^\s*default\s*$/.test(line) && nextHop.test(next));

/** `ip route` and `ip -6 route`, plain or with `-j`. */
export function parseRoutes(text: string, file: string, firstLine: number): Routes {
  const routes = new Map<string, Route>();
  const rows = text.trimStart().startsWith("[")
    ? routesFromJson(text, file, firstLine)
    : fromText(text.split("\n"), file, firstLine);
  for (const route of rows) {
    const key = `${route.destination} metric ${route.metric}`;
    const devices = [...(routes.get(key)?.devices ?? []), ...route.devices];
    routes.set(key, { ...route, devices: [...new Set(devices)] });
  }
  return { file, routes };
}

function fromText(lines: readonly string[], file: string, firstLine: number): Route[] {
  const routes: (Route & { devices: string[] })[] = [];
  let isMain = true;
  lines.forEach((line, index) => {
    if (line.trim() === "") return;
    const after = (word: string): string | undefined =>
      new RegExp(String.raw`\s${word}\s+(\S+)`).exec(line)?.[1];
    const device = after("dev");
    if (nextHop.test(line)) {
      if (isMain && device !== undefined) routes.at(-1)?.devices.push(device);
      return;
    }
    const found = beginning.exec(/^\s*default\s*$/.test(line) ? "default proto " : line);
    if (found === null) {
      const fix = "the dump may be cut off: take it again";
      throw new DumpProblem(file, firstLine + index, "a line of `ip route`", line.trim(), fix);
    }
    const [, type = "unicast", to = ""] = found;
    isMain = isOfMain(type, after("table"));
    if (!isMain) return;
    const isSix = (after("via") ?? "").includes(":") || after("pref") !== undefined;
    routes.push({
      destination: destinationOf(to, isSix, file, firstLine + index),
      metric: Number(after("metric") ?? 0),
      devices: device === undefined || type !== "unicast" ? [] : [device],
    });
  });
  return routes;
}

/** The kernel asks its table of local addresses before; other tables only by rules of `ip rule`. */
const isOfMain = (type: string, table = "main"): boolean =>
  table === "main" && !/^(local|broadcast|multicast|anycast)$/.test(type);

function destinationOf(text: string, isSix: boolean, file: string, line: number): string {
  if (text === "default") return isSix ? "::/0" : "0.0.0.0/0";
  if (rangeOf(text) !== null) return text;
  throw new DumpProblem(file, line, "a destination such as default or 10.0.0.0/24", text);
}

function routesFromJson(text: string, file: string, firstLine: number): Route[] {
  interface Row {
    readonly dst?: string;
    readonly type?: string;
    readonly table?: string;
    readonly gateway?: string;
    readonly pref?: string;
    readonly metric?: number;
    readonly dev?: string;
    readonly nexthops?: readonly { readonly dev?: string }[];
  }
  let rows: readonly Row[];
  try {
    rows = JSON.parse(text) as readonly Row[];
  } catch (error) {
    const got = error instanceof Error ? error.message : String(error);
    throw new DumpProblem(file, firstLine, "the whole JSON of `ip -j route`", got);
  }
  return rows
    .filter(({ type = "unicast", table }) => isOfMain(type, table))
    .map(
      ({ dst = "default", type = "unicast", gateway, pref, metric = 0, dev, nexthops = [] }) => ({
        destination: destinationOf(
          dst,
          (gateway ?? "").includes(":") || pref !== undefined,
          file,
          firstLine,
        ),
        metric,
        devices:
          type === "unicast"
            ? [dev, ...nexthops.map((hop) => hop.dev)].filter((name) => name !== undefined)
            : [],
      }),
    );
}
