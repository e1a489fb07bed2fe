import { canonical } from "../addresses/range";
import { DumpProblem } from "../dump-problem";
import type { RealServer, VirtualServer, VirtualServers } from "./virtual-server";
import { asListed, isOfKernel } from "./read-proc";
import { readSave } from "./read-save";

interface Draft extends VirtualServer {
  readonly realServers: RealServer[];
}

const heading = /^\s*(IP Virtual Server version|Prot LocalAddress:Port|-> RemoteAddress:Port)/;
const service = /^\s*(TCP|UDP|SCTP|FWM)\s+(\S+)\s+(\S+)(.*)$/;
const real = /^\s*->\s+(\S+)\s+(Masq|Route|Tunnel|Local)\s+(\d+)\b/i;
const saved = /^-[AaEe] (-[tuf]|--(tcp|udp|sctp|fwmark)-service)\b/;

export function recognises(text: string): boolean {
  return text.split("\n").some((line) => heading.test(line) || saved.test(line.trim()));
}

/** `ipvsadm -ln`, `ipvsadm -Sn`, or `/proc/net/ip_vs`. */
export function parse(text: string, file: string, firstLine: number): VirtualServers {
  const lines = text.split("\n");
  const servers = new Map<string, VirtualServer>();
  const put = (server: VirtualServer): void => {
    const key = keyOf(server.protocol, server.address, server.port);
    const before = servers.get(key);
    if (
      before !== undefined &&
      JSON.stringify(before.realServers) !== JSON.stringify(server.realServers)
    ) {
      throw new DumpProblem(
        file,
        server.line,
        `virtual service ${key} once`,
        "it again with other real servers",
      );
    }
    servers.set(key, server);
  };
  if (lines.some((line) => saved.test(line.trim()))) readSave(lines, file, firstLine).forEach(put);
  else readList(isOfKernel(lines) ? lines.map(asListed) : lines, file, firstLine).forEach(put);
  return { file, servers };
}

export function keyOf(protocol: string, address: string, port: number): string {
  return `${protocol} ${address} ${port}`;
}

function readList(lines: readonly string[], file: string, firstLine: number): Draft[] {
  const drafts: Draft[] = [];
  lines.forEach((line, index) => {
    const at = firstLine + index;
    if (line.trim() === "" || heading.test(line)) return;
    const found = service.exec(line);
    if (found !== null) {
      drafts.push(begin(found as unknown as string[], file, at));
      return;
    }
    const server = real.exec(line);
    const current = drafts.at(-1);
    if (server === null || current === undefined) {
      throw new DumpProblem(
        file,
        at,
        "`TCP ADDRESS:PORT SCHEDULER` or `-> ADDRESS:PORT FORWARD WEIGHT`",
        line.trim(),
        "the dump may be cut off: take it again with `ipvsadm -ln`",
      );
    }
    const forward = server[2]!.toLowerCase() as RealServer["forward"];
    current.realServers.push({
      ...socketOf(server[1]!, file, at),
      forward,
      weight: Number(server[3]),
    });
  });
  return drafts;
}

function begin(
  [, kind, where, scheduler, rest]: readonly string[],
  file: string,
  line: number,
): Draft {
  const protocol = kind!.toLowerCase() as VirtualServer["protocol"];
  const mark = protocol === "fwm";
  const six = rest!.trim().startsWith("IPv6") || scheduler === "IPv6";
  const words = (scheduler === "IPv6" ? rest! : `${scheduler} ${rest!.replace(/^\s*IPv6/, "")}`)
    .trim()
    .split(/\s+/);
  const at = mark ? { address: "", port: Number(where) } : socketOf(where!, file, line);
  const persistent = words.indexOf("persistent");
  const ticks = words.indexOf("ticks");
  const mask = words.indexOf("mask");
  const family = mark ? (six ? 6 : 4) : at.address.includes(":") ? 6 : 4;
  return {
    ...at,
    protocol,
    family,
    scheduler: words[0]!,
    flags:
      /\(([^)]*)\)/
        .exec(rest!)?.[1]
        ?.split(",")
        .map((flag) => flag.trim()) ?? (words.includes("ops") ? ["ops"] : []),
    persistentSeconds: persistent < 0 ? null : Number(words[persistent + 1]),
    ...(ticks >= 0 && { persistentTicks: Number(words[ticks + 1]) }),
    persistencePrefix: mask < 0 ? (family === 4 ? 32 : 128) : prefixOf(words[mask + 1]!),
    realServers: [],
    line,
  };
}

/** `255.255.255.0` or, for IPv6, a number of bits. */
export function prefixOf(mask: string): number {
  if (/^\d+$/.test(mask)) return Number(mask);
  return mask
    .split(".")
    .map((part) => Number(part).toString(2).replace(/0+$/, "").length)
    .reduce((sum, bits) => sum + bits, 0);
}

/** `10.0.0.1:80`, `[fd00::1]:80`; without `-n` both may be names. */
export function socketOf(
  text: string,
  file: string,
  line: number,
): { address: string; port: number } {
  const found = /^\[?([0-9a-fA-F.:]+?)\]?:(\d+)$/.exec(text);
  const address = found === null ? null : canonical(found[1]!);
  if (found === null || address === null) {
    throw new DumpProblem(
      file,
      line,
      "an address and a port such as 10.0.0.1:80",
      text,
      "take the dump with `ipvsadm -ln`",
    );
  }
  return { address, port: Number(found[2]) };
}
