import { output } from "./inside";
import type { Mode } from "./proxy";

const iptables: Readonly<Record<string, string>> = {
  "iptables-save.txt": "iptables-save",
  "ip6tables-save.txt": "ip6tables-save",
  "iptables-nat-S.txt": "iptables -t nat -S",
  "ip6tables-nat-S.txt": "ip6tables -t nat -S",
  "iptables-filter-S.txt": "iptables -S",
  "ip6tables-filter-S.txt": "ip6tables -S",
  "iptables-nat-nvL.txt": "iptables -t nat -nvL",
  "iptables-filter-nvL.txt": "iptables -nvL",
  "iptables-nat-L.txt": "iptables -t nat -L",
  "ip6tables-nat-nvL.txt": "ip6tables -t nat -nvL",
  "nft.txt": "nft list ruleset",
};

const nftables: Readonly<Record<string, string>> = {
  "nft.txt": "nft list ruleset",
  "nft-a.txt": "nft -a list ruleset",
  "nft.json": "nft -j list ruleset",
};

const ipvs: Readonly<Record<string, string>> = {
  "iptables-save.txt": "iptables-save",
  "ip6tables-save.txt": "ip6tables-save",
  "iptables-nat-nvL.txt": "iptables -t nat -nvL",
  "ipset-save.txt": "ipset save",
  "ipset-list.txt": "ipset list",
  "ipvsadm-Sn.txt": "ipvsadm -Sn",
  "ipvsadm-ln.txt": "ipvsadm -ln",
};

const addresses: Readonly<Record<string, string>> = {
  "ip-address.txt": "ip address",
};

/** What a node's kernel has, in all the ways in which people take it down; by file name. */
export async function dump(mode: Mode): Promise<Record<string, string>> {
  const commands = { ...{ iptables, nftables, ipvs }[mode], ...addresses };
  const texts = Object.entries(commands).map(async ([file, line]) => {
    const [command = "", ...args] = line.split(" ");
    return [file, await output(command, ...args)] as const;
  });
  return Object.fromEntries(await Promise.all(texts));
}
