import type { Answer, Step } from "../../model/answer";

const step = (table: string, chain: string, rule: string, effect: string): Step => ({
  table,
  chain,
  rule: `-A ${chain} ${rule}`,
  effect,
});

/** An answer as iptables gives it, with as many endpoints as wanted. */
export function answerOf(count: number, changes: Partial<Answer> = {}): Answer {
  const endpoints = Array.from({ length: count }, (_, index) => ({
    address: `10.244.${index}.2:80`,
    probability: 1 / count,
  }));
  return {
    mode: "iptables",
    packet: { from: "pod", source: null, destination: "10.96.0.41", port: 80, protocol: "tcp" },
    steps: [
      step("nat", "PREROUTING", "-j KUBE-SERVICES", "goes on in KUBE-SERVICES"),
      step("nat", "KUBE-SERVICES", "-d 10.96.0.41/32 -j KUBE-SVC-A", "goes on in KUBE-SVC-A"),
      ...endpoints.map(({ address }, index) =>
        step("nat", `KUBE-SEP-${index}`, `-j DNAT --to-destination ${address}`, `to ${address}`),
      ),
      step("filter", "FORWARD", "-j KUBE-FORWARD", "goes on in KUBE-FORWARD"),
      step("nat", "POSTROUTING", "-j KUBE-POSTROUTING", "goes on in KUBE-POSTROUTING"),
      step("nat", "KUBE-POSTROUTING", "-m mark ! --mark 0x4000/0x4000 -j RETURN", "goes back"),
    ],
    verdict: "dnat",
    endpoints,
    masquerade: false,
    affinitySeconds: null,
    reason: "Service default/web has endpoints.",
    notes: [],
    ...changes,
  };
}
