import type { NodeDump } from "../../model/dump";
import type { Iptables } from "../../model/iptables";
import { type Range, rangeOf } from "../../model/range";
import { podsOf as podsOfNftables } from "../nftables/facts";

/** Where pods are: ranges of addresses, or interfaces that they come by. */
export interface Pods {
  readonly ranges: readonly Range[];
  readonly devices: readonly string[];
}

/** How kube-proxy writes "not from a pod of this cluster", and in other places "from one". */
const bySource = [
  /! -s (\S+\/\d+) .*-j KUBE-MARK-MASQ\b/,
  /KUBE-MARK-MASQ\b.*\s!([0-9a-f.:]+\/\d+)\s/i,
  /-s (\S+\/\d+) .*-j KUBE-SV[CL]-/,
  /KUBE-SVC-\S+\s.*?\s(?!0\.0\.0\.0\/0|::\/0)([0-9a-f.:]+\/\d+)\s.*(?:pod traffic for|Redirect pods)/i,
  /-s (\S+\/\d+) .*conntrack pod source rule/,
];

const byDevice = [/! -i (\S+) .*-j KUBE-MARK-MASQ\b/, /-i (\S+) .*-j KUBE-SV[CL]-/];

const worthALook = /KUBE-MARK-MASQ|KUBE-SV[CL]-|pod source rule/;

const known = new WeakMap<Iptables, Pods>();

/** Where pods are, by the first rule of kube-proxy that distinguishes pods from others. */
export function podsOf(dump: NodeDump, family: 4 | 6): Pods {
  const iptables = family === 4 ? dump.iptables4 : dump.iptables6;
  const own =
    iptables === null ? { ranges: [], devices: [] } : (known.get(iptables) ?? look(iptables));
  if (iptables !== null) known.set(iptables, own);
  if (dump.nftables === null) return own;
  const { ranges, devices } = podsOfNftables(dump.nftables, family);
  return {
    ranges: [...own.ranges, ...ranges.map(rangeOf).filter((range) => range !== null)],
    devices: [...own.devices, ...devices],
  };
}

function look(iptables: Iptables): Pods {
  for (const text of rulesOf(iptables)) {
    if (!worthALook.test(text)) continue;
    const range = bySource
      .map((pattern) => rangeOf(pattern.exec(text)?.[1] ?? ""))
      .find((each) => each !== null);
    // A single address would be an endpoint that reaches itself.
    if (range?.family === iptables.family && range.low !== range.high)
      return { ranges: [range], devices: [] };
    const device = byDevice
      .map((pattern) => pattern.exec(text)?.[1])
      .find((name) => name !== undefined);
    if (device !== undefined) return { ranges: [], devices: [device] };
  }
  return { ranges: [], devices: [] };
}

function* rulesOf(iptables: Iptables): Iterable<string> {
  for (const table of iptables.tables.values()) {
    for (const chain of table.chains.values()) {
      if (!chain.name.startsWith("KUBE-") || chain.name.startsWith("KUBE-SEP-")) continue;
      for (const rule of chain.rules) yield rule.text;
    }
  }
}
