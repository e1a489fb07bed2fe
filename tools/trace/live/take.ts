import { Progress } from "../../shared/progress";
import { UserError } from "../../shared/user-error";
import type { DumpText } from "../read/read-dumps";
import type { Cluster } from "./cluster";
import type { Outcome } from "./exec";

interface Source {
  /** In which it is kept. */
  readonly file: string;
  readonly command: readonly string[];
}

/**
 * Of one thing, each where the one before it has failed: upstream's image has cat, and no ipvsadm.
 */
const things: readonly (readonly Source[])[] = [
  [{ file: "iptables-save.txt", command: ["iptables-save"] }],
  [{ file: "ip6tables-save.txt", command: ["ip6tables-save"] }],
  [{ file: "ipset-save.txt", command: ["ipset", "save"] }],
  [
    { file: "ipvsadm.txt", command: ["ipvsadm", "-Sn"] },
    { file: "ip_vs.txt", command: ["cat", "/proc/net/ip_vs"] },
  ],
  [{ file: "nft.json", command: ["nft", "-j", "list", "ruleset"] }],
  [{ file: "ip-addr.txt", command: ["ip", "addr"] }],
  [{ file: "ip-route.txt", command: ["ip", "route"] }],
];

export interface Taken {
  readonly texts: readonly DumpText[];
  /** What could not be taken and why, one sentence each. */
  readonly notes: readonly string[];
}

/** What the node's kernel has, through the pod of its kube-proxy. */
export async function take(cluster: Cluster, node: string): Promise<Taken> {
  const addresses = await cluster.addressesOf(node);
  const { pod, run } = await cluster.kubeProxyOn(node);
  const texts: DumpText[] = [];
  const notes: string[] = [];
  // One after another: a busy node answers one of them within seconds, and all at once within
  // minutes.
  await new Progress(process.stderr).during(`asking ${pod} on ${node}`, async (step) => {
    const ask = async ({ file, command }: Source): Promise<string | null> => {
      const name = command.join(" ");
      step.update(name);
      const outcome = await run(command);
      if ("failure" in outcome) return `\`${name}\` in ${pod}: ${whyNot(outcome)}.`;
      texts.push({ file, text: outcome.output });
      return null;
    };
    for (const sources of things) {
      const failures: string[] = [];
      for (const source of sources) {
        const failure = await ask(source);
        if (failure === null) break;
        failures.push(failure);
      }
      if (failures.length === sources.length) notes.push(...failures);
    }
  });
  if (texts.length === 0) {
    throw new UserError(`nothing could be taken from ${node}:\n  ${notes.join("\n  ")}`);
  }
  if (texts.some(({ file }) => file === "ip-addr.txt")) return { texts, notes };
  return {
    texts: [...texts, { file: "node-addresses.txt", text: brief(node, addresses) }],
    notes: [
      ...notes,
      `The node's own addresses are those that the API has: ${addresses.join(", ")}.`,
    ],
  };
}

/** kube-proxy's image has what kube-proxy uses, which need not be everything. */
function whyNot({ failure }: Extract<Outcome, { failure: string }>): string {
  if (/\/proc\/net\/ip_vs.*no such file/i.test(failure)) return "the kernel has no IPVS loaded";
  if (/executable file not found|no such file or directory/i.test(failure)) {
    return "the image does not have it";
  }
  return failure.split("\n")[0]?.replace(/\.$/, "") ?? "";
}

/** As `ip -br addr` would write it, on the interface that is not known. */
const brief = (node: string, addresses: readonly string[]): string =>
  addresses
    .filter((address) => /^[\d.]+$|:/.test(address))
    .map((address) => `${node}  UNKNOWN  ${address}/${address.includes(":") ? 128 : 32}\n`)
    .join("");
