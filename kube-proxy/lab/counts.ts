import { type Counts, countsOf } from "../counts";
import type { NodeDump } from "../node-dump";
import { nodeDump } from "../read-dumps";
import { output } from "./inside";
import type { Mode } from "./proxy";

/** What kube-proxy has written into the kernel, for IPv4. */
export interface Written extends Counts {
  /** Rules in the chains of single endpoints. */
  readonly endpointRules: number;
}

const commands: Readonly<Record<Mode, readonly string[]>> = {
  iptables: ["iptables-save"],
  nftables: ["nft list table ip kube-proxy"],
  ipvs: ["iptables-save", "ipset save", "ipvsadm -Sn"],
};

export async function written(mode: Mode): Promise<Written> {
  const texts = commands[mode].map(async (line) => {
    const [command = "", ...args] = line.split(" ");
    return { file: line, text: await output(command, ...args) };
  });
  const dump = nodeDump(await Promise.all(texts));
  return { ...countsOf(dump), endpointRules: endpointRules(dump) };
}

function endpointRules({ iptables4, nftables }: NodeDump): number {
  const tables = [...(iptables4?.tables.values() ?? []), ...(nftables?.tables.values() ?? [])];
  return tables
    .flatMap(({ chains }): [string, { rules: readonly unknown[] }][] => [...chains])
    .filter(([name]) => /^(KUBE-SEP|endpoint)-/.test(name))
    .reduce((sum, [, { rules }]) => sum + rules.length, 0);
}
