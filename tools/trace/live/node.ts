import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";

import type { V1Service } from "@kubernetes/client-node";

import { Progress } from "../../shared/progress";
import { UserError } from "../../shared/user-error";
import type { NodeDump } from "../model/dump";
import { type Destination, type Packet, serviceName } from "../model/packet";
import { type DumpText, nodeDump } from "../read/read-dumps";
import { type Access, type Cluster, connect, type Outcome } from "./cluster";

interface LiveNode {
  readonly dump: NodeDump;
  /** `NAMESPACE/NAME[:PORT]`, as the API has it. */
  serviceNamed(text: string): Promise<Destination[]>;
}

export async function liveNode(node: string, access: Access): Promise<LiveNode> {
  const cluster = await connect(access);
  const { texts, notes } = await take(cluster, node);
  return {
    dump: nodeDump(texts, notes),
    serviceNamed: async (text) => {
      const { namespace, name, port } = serviceName(text);
      return destinationsOf(await cluster.service(namespace, name), port);
    },
  };
}

/** Takes the dumps of a node into a folder, all of them or none. */
export async function dumpNode(node: string, access: Access, folder: string): Promise<Taken> {
  checkEmpty(folder);
  const taken = await take(await connect(access), node);
  keep(taken.texts, folder);
  return taken;
}

/** Refused before the cluster is asked: two nodes' dumps in one folder are of neither. */
function checkEmpty(folder: string): void {
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new UserError(
      `dump: expected a new or empty folder, got ${folder}, which has files in it`,
      2,
    );
  }
}

/** The dumps as a folder, all of them or none. */
function keep(texts: readonly DumpText[], folder: string): void {
  const whole = resolve(folder);
  mkdirSync(dirname(whole), { recursive: true });
  const draft = mkdtempSync(`${whole}.`);
  try {
    for (const { file, text } of texts) writeFileSync(join(draft, file), text);
    renameSync(draft, whole);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    throw error;
  }
}

/** Where a Service is reached inside its cluster, as the API has it; `port` by name or number. */
function destinationsOf({ metadata, spec }: V1Service, port: string | null): Destination[] {
  const name = `${metadata?.namespace}/${metadata?.name}`;
  const addresses = (spec?.clusterIPs ?? []).filter((address) => address !== "None");
  if (addresses.length === 0) {
    throw new UserError(
      `service: ${name} has no cluster IP (headless, or an ExternalName), so kube-proxy leaves it be`,
      2,
    );
  }
  const all = spec?.ports ?? [];
  const ports = all.filter((each) => port === null || [each.name, `${each.port}`].includes(port));
  if (ports.length === 0) {
    const had = all
      .map((each) => (each.name ? `${each.name} (${each.port})` : each.port))
      .join(", ");
    throw new UserError(`service: expected a port of ${name}, which are ${had}, got "${port}"`, 2);
  }
  return addresses.flatMap((destination) =>
    ports.map((each) => ({
      destination,
      port: each.port,
      protocol: (each.protocol ?? "TCP").toLowerCase() as Packet["protocol"],
    })),
  );
}

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

interface Taken {
  readonly texts: readonly DumpText[];
  /** What could not be taken and why, one sentence each. */
  readonly notes: readonly string[];
}

/** What the node's kernel has, through the pod of its kube-proxy. */
async function take(cluster: Cluster, node: string): Promise<Taken> {
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
