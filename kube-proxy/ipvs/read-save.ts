import { DumpProblem } from "../dump-problem";
import { prefixOf, socketOf } from "./parse";
import type { RealServer, VirtualServer } from "./virtual-server";

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

/** The commands that `ipvsadm -Sn` prints: `-A` for a virtual service, `-a` for a real server of it. */
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
