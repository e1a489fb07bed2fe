import type { Body } from "../api";
import { isSick, type Member } from "./members";
import { isPodReady } from "../nodes/mirror-pods";
import { isReady, readyText } from "../nodes/node";
import { components } from "../control-plane/static-pods";

/** A cluster as one of its control planes sees the others. */
export interface Seen {
  /** The machine that looks. */
  readonly own: string;
  readonly members: readonly Member[];
  readonly nodes: readonly Body[];
  readonly pods: readonly Body[];
  /** Whether it is known that Nodes can become Ready. */
  readonly awaitsReady: boolean;
}

/** What of etcd's members an answer to a control plane would show. */
function membersAmiss({ own, members, nodes }: Seen): string[] {
  const silent = members.filter(
    (member) => member.machine !== own && (!member.lives || isSick(member, "etcd")),
  );
  const canSpareOne = members.length - silent.length - 1 > Math.floor(members.length / 2);
  const hasNode = ({ machine }: Member) => nodes.some(({ metadata }) => metadata.name === machine);
  return [
    ...members
      .filter((member) => isSick(member, "etcd-space"))
      .map(({ machine }) => `etcd member ${machine}: alarm NOSPACE`),
    ...silent
      .filter((member) => !canSpareOne || hasNode(member))
      .map(({ machine }) => `etcd member ${machine} is not healthy`),
  ];
}

/** What cloud-init/bootstrap.sh finds amiss with the other control planes, a line for each. */
export function peersAmiss(seen: Seen): string[] {
  const { own, nodes, pods, awaitsReady } = seen;
  const peers = nodes.filter(
    ({ metadata }) =>
      metadata.name !== own &&
      metadata.labels?.["node-role.kubernetes.io/control-plane"] !== undefined,
  );
  return [
    ...membersAmiss(seen),
    ...peers.flatMap((node) => {
      const { name } = node.metadata;
      const unready = components
        .map((component) => `${component}-${name}`)
        .filter((pod) => !pods.some((one) => one.metadata.name === pod && isPodReady(one)));
      return [
        ...(awaitsReady && !isReady(node) ? [`node ${name}: Ready is ${readyText(node)}`] : []),
        ...unready.map((pod) => `static pod ${pod} is not Ready`),
      ];
    }),
  ];
}
