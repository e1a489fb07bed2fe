import * as addresses from "./addresses/parse";
import type { Addresses, Interface } from "./addresses/parse";
import { cut, type Section } from "./cut";
import { DumpProblem } from "./dump-problem";
import type { IpSets } from "./ipset/ip-set";
import * as ipset from "./ipset/parse";
import type { Iptables } from "./iptables/iptables";
import * as iptables from "./iptables/parse";
import * as ipvs from "./ipvs/parse";
import type { VirtualServers } from "./ipvs/virtual-server";
import * as nftables from "./nftables/parse";
import type { Ruleset } from "./nftables/ruleset";

/** What one section of a text turned out to be. */
export type Recognised = { readonly file: string; readonly section: Section } & (
  | { readonly kind: "iptables"; readonly said: readonly Iptables[] }
  | { readonly kind: "ipset"; readonly said: IpSets }
  | { readonly kind: "ipvs"; readonly said: VirtualServers }
  | { readonly kind: "nftables"; readonly said: Ruleset }
  | { readonly kind: "addresses"; readonly said: Addresses }
);

interface Parser<T> {
  recognises(text: string): boolean;
  parse(text: string, file: string, firstLine: number): T;
}

/** In the order in which they are asked: rules of IPVS begin as those of iptables do. */
const parsers = { ipvs, iptables, ipset, nftables, addresses } satisfies Record<
  Recognised["kind"],
  Parser<unknown>
>;

const kinds = Object.keys(parsers) as Recognised["kind"][];

const expected =
  "the output of iptables-save, iptables -S or -L, ipset save or list, ipvsadm -Sn or -ln, /proc/net/ip_vs, nft list, or ip addr";

/** Every dump in a text, told by its content; prose around dumps is passed over. */
export function recognise(text: string, file: string): Recognised[] {
  const found = cut(text).flatMap((section) => {
    const kind = kinds.find((name) => parsers[name].recognises(section.text));
    if (kind === undefined) return [];
    const said = parsers[kind].parse(section.text, file, section.firstLine);
    if ("interfaces" in said && !said.interfaces.some(hasAddress)) return [];
    return [{ file, section, kind, said } as Recognised];
  });
  if (found.length === 0) throw unknown(text, file);
  return found;
}

/** `ip link` looks like `ip addr`, and says nothing of addresses. */
const hasAddress = ({ addresses }: Interface): boolean => addresses.length > 0;

function unknown(text: string, file: string): DumpProblem {
  const lines = text.split("\n");
  const first = lines.findIndex((line) => line.trim() !== "");
  const line = (lines[first] ?? "").trim();
  const shown = JSON.stringify(line.length > 60 ? `${line.slice(0, 60)}…` : line);
  const got = unprintable.test(line) ? "binary data" : shown;
  return new DumpProblem(
    file,
    first + 1,
    expected,
    got,
    "leave the file out, or take the dump again",
  );
}

const unprintable = /[\u0000-\u0008\ufffd]/;
