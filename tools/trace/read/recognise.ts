import {
  type Addresses,
  DumpProblem,
  type Interface,
  type IpSets,
  type Routes,
} from "../model/dump";
import type { Iptables } from "../model/iptables";
import type { VirtualServers } from "../model/ipvs";
import type { Ruleset } from "../model/nftables";
import * as addresses from "./addresses";
import { sectionsOf, type Section } from "./sections";
import * as ipset from "./ipset";
import * as iptables from "./iptables/parse";
import * as ipvs from "./ipvs";
import * as nftables from "./nftables/parse";
import * as routes from "./ip";

/** What one section of a text turned out to be. */
export type Recognised = { readonly file: string; readonly section: Section } & (
  | { readonly kind: "iptables"; readonly content: readonly Iptables[] }
  | { readonly kind: "ipset"; readonly content: IpSets }
  | { readonly kind: "ipvs"; readonly content: VirtualServers }
  | { readonly kind: "nftables"; readonly content: Ruleset }
  | { readonly kind: "addresses"; readonly content: Addresses }
  | { readonly kind: "routes"; readonly content: Routes }
);

const parsers = { ipvs, iptables, ipset, nftables, addresses, routes };

const expected =
  "the output of iptables-save, iptables -S or -L, ipset save or list, ipvsadm -Sn or -ln, /proc/net/ip_vs, nft list, ip addr, or ip route";

/** Every dump in a text, recognised by its content; prose around dumps is passed over. */
export function recognise(whole: string, file: string): Recognised[] {
  return sectionsOf(whole).flatMap((section) => {
    const { kind, text, firstLine } = section;
    const content = parsers[kind].parse(text, file, firstLine);
    const isEmpty =
      "interfaces" in content
        ? !content.interfaces.some(hasAddress)
        : "length" in content && content.length === 0;
    return isEmpty ? [] : [{ file, section, kind, content } as Recognised];
  });
}

/** `ip link` looks like `ip addr`, and says nothing of addresses. */
const hasAddress = ({ addresses }: Interface): boolean => addresses.length > 0;

/** What else people take of a node; none of it decides where a new connection goes. */
const others: readonly (readonly [string, RegExp])[] = [
  ["ip link", /^\d+: \S+: <[^>]*>/m],
  ["ip rule", /^\d+:\s+from \S/m],
  ["ip neigh", /^[\da-f.:]+ dev \S+ .*(lladdr|FAILED|INCOMPLETE)/m],
  ["conntrack -L", /^(\S+\s+\d+\s+)?[a-z]+\s+\d+ (\d+ )?.*\bsrc=\S+ dst=\S+/m],
  ["sysctl -a", /^\w[\w-]*(\.[\w-]+)+ = /m],
];

/** The command that printed a text which is no dump; null where none is recognised. */
export const otherCommand = (text: string): string | null =>
  others.find(([, lines]) => lines.test(text))?.[0] ?? null;

/** Why a text is refused in which no dump was recognised. */
export function noDump(text: string, file: string): DumpProblem {
  const lines = text.split("\n");
  const first = lines.findIndex((line) => line.trim() !== "");
  const line = (lines[first] ?? "").trim();
  const shown = JSON.stringify(line.length > 60 ? `${line.slice(0, 60)}…` : line);
  const got = unprintable.test(line) ? "binary data" : shown;
  const fix = "leave the file out, or take the dump again";
  return new DumpProblem(file, first + 1, expected, got, fix);
}

const unprintable = /[^\P{Cc}\t\n\r]|\ufffd/u;
