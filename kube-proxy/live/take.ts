import type { DumpText } from "../read-dumps";
import { Progress } from "../../local-azure/progress";
import { Trouble } from "../../local-azure/trouble";
import type { Cluster } from "./cluster";
import type { Outcome } from "./exec";

/** By the name of the file in which it is kept. */
const commands: Readonly<Record<string, readonly string[]>> = {
  "iptables-save.txt": ["iptables-save"],
  "ip6tables-save.txt": ["ip6tables-save"],
  "ipset-save.txt": ["ipset", "save"],
  "ipvsadm.txt": ["ipvsadm", "-Sn"],
  "nft.json": ["nft", "-j", "list", "ruleset"],
  "ip-addr.txt": ["ip", "addr"],
};

export interface Taken {
  readonly texts: readonly DumpText[];
  /** What could not be taken and why, one sentence each. */
  readonly notes: readonly string[];
}

/** What the node's kernel has, through the pod of its kube-proxy. */
export async function take(cluster: Cluster, node: string): Promise<Taken> {
  const addresses = await cluster.addressesOf(node);
  const { pod, run } = await cluster.kubeProxyOn(node);
  const outcomes: { file: string; name: string; outcome: Outcome }[] = [];
  // One after another: a busy node answers one of them within seconds, and all at once within minutes.
  await new Progress(process.stderr).during(`asking ${pod} on ${node}`, async (step) => {
    for (const [file, command] of Object.entries(commands)) {
      const name = command.join(" ");
      step.say(name);
      outcomes.push({ file, name, outcome: await run(command) });
    }
  });
  const texts = outcomes.flatMap(({ file, outcome }) =>
    "output" in outcome ? [{ file, text: outcome.output }] : [],
  );
  const notes = outcomes.flatMap(({ name, outcome }) =>
    "failure" in outcome ? [`\`${name}\` in ${pod}: ${whyNot(outcome)}.`] : [],
  );
  if (texts.length === 0) {
    throw new Trouble(`nothing could be taken from ${node}:\n  ${notes.join("\n  ")}`);
  }
  if (texts.some(({ file }) => file === "ip-addr.txt")) return { texts, notes };
  return {
    texts: [...texts, { file: "node-addresses.txt", text: brief(node, addresses) }],
    notes: [
      ...notes,
      `The node's own addresses are those that the API tells: ${addresses.join(", ")}.`,
    ],
  };
}

/** kube-proxy's image has what kube-proxy uses, which need not be everything. */
function whyNot({ failure }: Extract<Outcome, { failure: string }>): string {
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
