import type { Mode } from "../cluster/proxy";
import type { Measurement } from "./lab-task";
import { ratiosOf, tableOf } from "./table";

export interface Measured {
  /** What the figures depend on, one line each. */
  readonly machine: readonly string[];
  readonly all: readonly Measurement[];
}

/** What has been measured: on this host's kernel, and in a virtual machine. */
export interface Places {
  readonly host?: Measured;
  readonly virtualMachine?: Measured;
}

/** docs/proxy-modes.md, whose every figure comes from the measurements. */
export function pageOf({ host, virtualMachine }: Places): string {
  const all = (virtualMachine ?? host)?.all ?? [];
  return `# kube-proxy's modes, measured

Made whole by these commands, and made anew by them:

\`\`\`sh
npm run compare -- --measure                    # on this host's kernel
npm run compare -- --measure --virtual-machine  # in a virtual machine, whose kernel has IPVS
\`\`\`

Each runs the real etcd, kube-apiserver and kube-proxy in namespaces of their own, makes Services of ${all[0]?.endpoints} endpoints each, and
starts kube-proxy as kubeadm configures it. Nothing of it is left afterwards.

- *rules*, *chains*, *sets and maps*: what the node's kernel has for IPv4 after the first sync.
- *IPVS destinations*: the endpoints of all its virtual servers.
- *first sync*: what kube-proxy itself reports (\`sync_full_proxy_rules_duration_seconds\`, of IPVS \`sync_proxy_rules_duration_seconds\`).
- *change in force*: from the API taking another endpoint for one more Service of a single pod, until a connection reaches that pod. Median and
  worst of five, each after a pause, since kube-proxy writes at most once a second.
- *CPU*: processor time of kube-proxy and of the tools it runs.
${host ? onHost(host) : ""}${virtualMachine ? inVirtualMachine(virtualMachine) : ""}
## Is it 120 entries against a constant?

An old rule says that 10 Services of 6 pods are 120 entries for iptables, and a constant number for what came after it. Between ${ends(all)}
Services, each further one adds:

${rule(all)}
`;
}

const listed = (lines: readonly string[]): string => lines.map((line) => `- ${line}`).join("\n");

const onHost = ({ machine, all }: Measured): string => `
## On a host

${listed(machine)}

${tableOf(all)}

The same as [CSV](proxy-modes.csv), and as a picture:

![rules, first sync and changes over the number of Services](proxy-modes.svg)
`;

const inVirtualMachine = ({ machine, all }: Measured): string => `
## In a virtual machine

${listed(machine)}

Its processors may be emulated, 10 to 20 times slower than real ones. So each time is shown as a multiple of what iptables took for as many
Services; the seconds are in the [CSV](proxy-modes-virtual-machine.csv).

${ratiosOf(all)}
`;

const ends = (all: readonly Measurement[]): string =>
  `${all[0]?.services} and ${all.at(-1)?.services}`;

function rule(all: readonly Measurement[]): string {
  const modes = [...new Set(all.map(({ mode }) => mode))];
  return modes
    .map((mode) => {
      const some = all.filter((one) => one.mode === mode);
      const [least, most] = [some[0], some.at(-1)];
      if (!least || !most || least === most)
        return `- ${mode}: one number of Services shows nothing`;
      const each = (figure: (one: Measurement) => number | null): number =>
        ((figure(most) ?? 0) - (figure(least) ?? 0)) / (most.services - least.services);
      const rules = each((one) => one.rules);
      const ofEndpoints = each((one) => one.endpointRules);
      const members = each((one) => one.members);
      const destinations = each((one) => one.destinations);
      const besides = (least.rules ?? 0) - rules * least.services;
      return [
        `- ${mode}: ${fixed(rules)} rules, ${fixed(ofEndpoints)} of them in chains of single endpoints, ${fixed(members)} members of sets and`,
        `  ${fixed(destinations)} destinations of IPVS, besides ${fixed(besides)} rules that are always there. For 10 Services that is ${fixed(10 * ofEndpoints)} in chains of endpoints and`,
        `  ${fixed(10 * (rules + members + destinations))} in all. ${met[mode]}`,
      ].join("\n");
    })
    .join("\n");
}

const fixed = (value: number): string => `${Math.round(value * 100) / 100}`;

/** What the number of Services means for a packet. */
const met: Readonly<Record<Mode, string>> = {
  iptables: "A new connection is compared with one rule after the other until its Service's comes.",
  nftables:
    "A new connection finds its Service in one look into a map, and its endpoint in another.",
  ipvs: "A new connection finds its Service in one look into a table.",
};
