import type { NodeDump } from "../node-dump";
import { serviceName, type Destination } from "../query";
import { nodeDump } from "../read-dumps";
import { connect, type Access } from "./cluster";
import { checkEmpty, keep } from "./keep";
import { destinationsOf } from "./service";
import { take, type Taken } from "./take";

export interface LiveNode {
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
