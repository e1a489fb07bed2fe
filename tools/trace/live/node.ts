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

import { UserError } from "../../shared/user-error";
import type { NodeDump } from "../model/dump";
import { type Destination, type Packet, serviceName } from "../model/packet";
import { type DumpText, nodeDump } from "../read/read-dumps";
import { type Access, connect } from "./cluster";
import { take, type Taken } from "./take";

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
