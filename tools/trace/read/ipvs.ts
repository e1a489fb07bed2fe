import {
  DumpProblem,
  keyOf,
  type RealServer,
  type VirtualServer,
  type VirtualServers,
} from "../model/dump";
import { canonical } from "../model/packet";

interface Draft extends VirtualServer {
  readonly realServers: RealServer[];
}

const heading = /^\s*(IP Virtual Server version|Prot LocalAddress:Port|-> RemoteAddress:Port)/;

const service = /^\s*(TCP|UDP|SCTP|FWM)\s+(\S+)\s+(\S+)(.*)$/;

const real = /^\s*->\s+(\S+)\s+(Masq|Route|Tunnel|Local)\s+(\d+)\b/i;

const saved = /^-[AaEe] (-[tuf]|--(tcp|udp|sctp|fwmark)-service)\b/;

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
function prefixOf(mask: string): number {
  if (/^\d+$/.test(mask)) return Number(mask);
  return mask
    .split(".")
    .map((part) => Number(part).toString(2).replace(/0+$/, "").length)
    .reduce((sum, bits) => sum + bits, 0);
}

/** `10.0.0.1:80`, `[fd00::1]:80`; without `-n` both may be names. */
function socketOf(text: string, file: string, line: number): { address: string; port: number } {
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

const kinds: Readonly<Record<string, VirtualServer["protocol"]>> = {
  "-t": "tcp",
  "--tcp-service": "tcp",
  "-u": "udp",
  "--udp-service": "udp",
  "--sctp-service": "sctp",
  "-f": "fwm",
  "--fwmark-service": "fwm",
};

const forwards: Readonly<Record<string, RealServer["forward"]>> = {
  "-m": "masq",
  "-g": "route",
  "-i": "tunnel",
  "--masquerading": "masq",
  "--gatewaying": "route",
  "--ipip": "tunnel",
};

/**
 * The commands that `ipvsadm -Sn` prints: `-A` for a virtual service, `-a` for a real server of it.
 */
export function readSave(
  lines: readonly string[],
  file: string,
  firstLine: number,
): VirtualServer[] {
  const servers = new Map<string, VirtualServer & { readonly realServers: RealServer[] }>();
  lines.forEach((raw, index) => {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) return;
    const at = firstLine + index;
    const words = line.split(/\s+/);
    const value = (...names: string[]): string | undefined => {
      const name = words.findIndex((word) => names.includes(word));
      return name < 0 ? undefined : words[name + 1];
    };
    const kind = words.find((word) => kinds[word] !== undefined);
    const where = kind === undefined ? undefined : value(kind);
    if (kind === undefined || where === undefined || !/^-[Aa]$/.test(words[0]!)) {
      throw new DumpProblem(
        file,
        at,
        "`-A -t ADDRESS:PORT …` or `-a -t ADDRESS:PORT -r ADDRESS:PORT …`",
        line,
      );
    }
    const protocol = kinds[kind]!;
    const service =
      protocol === "fwm" ? { address: "", port: Number(where) } : socketOf(where, file, at);
    const key = `${protocol} ${where}`;
    if (words[0] === "-A") {
      const family = service.address.includes(":") || words.includes("-6") ? 6 : 4;
      const persistent = value("-p", "--persistent");
      const mask = value("-M", "--netmask");
      servers.set(key, {
        ...service,
        protocol,
        family,
        scheduler: value("-s", "--scheduler") ?? "wlc",
        flags: [
          ...(value("-b", "--sched-flags")?.split(",") ?? []),
          ...(words.includes("-o") || words.includes("--ops") ? ["ops"] : []),
        ],
        persistentSeconds:
          persistent === undefined ? (words.includes("-p") ? 360 : null) : Number(persistent),
        persistencePrefix: mask === undefined ? (family === 4 ? 32 : 128) : prefixOf(mask),
        realServers: [],
        line: at,
      });
      return;
    }
    const server = servers.get(key);
    const real = value("-r", "--real-server");
    if (server === undefined || real === undefined) {
      throw new DumpProblem(
        file,
        at,
        server === undefined
          ? `\`-A\` of virtual service ${where} before its real servers`
          : "`-r ADDRESS:PORT`",
        line,
      );
    }
    const forward = forwards[words.find((word) => forwards[word] !== undefined) ?? "-g"]!;
    server.realServers.push({
      ...socketOf(real, file, at),
      forward,
      weight: Number(value("-w", "--weight") ?? 1),
    });
  });
  return [...servers.values()];
}

/**
 * The kernel's own list, `/proc/net/ip_vs`, which needs no `ipvsadm`. It looks like `ipvsadm -ln`,
 * with numbers in hexadecimal, times in ticks of the kernel's clock, and without the flags of
 * schedulers.
 */
const four = /\b([0-9A-F]{8}):([0-9A-F]{4})(?=\s|$)/;

const six = /\[((?:[0-9a-f]{4}:){7}[0-9a-f]{4})\]:([0-9A-F]{4})(?=\s|$)/;

/**
 * Only ipvsadm shortens addresses so; it may have a long one of IPv6 beside them, with a decimal
 * port.
 */
const decimal = /\d\.\d+:\d|::/;

const mark = /^FWM {2}(0[0-9A-F]{7}) /;

const persistent = /\bpersistent (\d+) ([0-9A-F]{8})$/;

/**
 * Ticks a second that kernels are built with; the usual one of Debian, Ubuntu and Azure Linux
 * first.
 */
const clocks = [250, 1000, 300, 100];

/** What sessionAffinity has unless a Service says otherwise. */
const defaultSeconds = 10_800;

export const isOfKernel = (lines: readonly string[]): boolean =>
  lines.some((line) => four.test(line) || six.test(line) || mark.test(line)) &&
  !lines.some((line) => decimal.test(line));

/**
 * How `ipvsadm -ln` would write a line; where clients stay for a time, its ticks stand behind its
 * seconds.
 */
const asListed = (line: string): string =>
  line
    .trimEnd()
    .replace(persistent, (_, ticks: string, mask: string) => {
      const time = `${secondsOf(Number(ticks))} ticks ${ticks}`;
      return `persistent ${time} mask ${prefixOfKernel(mask, six.test(line))}`;
    })
    .replace(four, (_, address: string, port: string) => `${dotted(address)}:${parseInt(port, 16)}`)
    .replace(six, (_, address: string, port: string) => `[${address}]:${parseInt(port, 16)}`)
    .replace(mark, (_, number: string) => `FWM  ${parseInt(number, 16)} `);

const secondsOf = (ticks: number): number =>
  clocks.some((clock) => ticks === defaultSeconds * clock)
    ? defaultSeconds
    : ticks / (clocks.find((clock) => ticks % clock === 0) ?? clocks[0]!);

const bytes = (hexadecimal: string): Buffer => Buffer.from(hexadecimal, "hex");

const dotted = (address: string): string => bytes(address).join(".");

/**
 * The kernel turns the bytes of both around: of a mask, which is right, and of IPv6's number of
 * bits.
 */
const prefixOfKernel = (mask: string, isSix: boolean): number =>
  isSix ? bytes(mask).readUInt32LE() : parseInt(mask, 16).toString(2).replace(/0+$/, "").length;
