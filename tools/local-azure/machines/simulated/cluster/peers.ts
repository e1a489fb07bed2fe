import type { Body } from "../api";
import { isUnhealthy, type Member } from "./members";
import { isPodReady } from "../nodes/mirror-pods";
import { isReady, readyText } from "../nodes/node";
import { components } from "../control-plane/static-pods";

/** A cluster as one of its control planes sees the others. */
export interface ObservedPeers {
  /** The machine that looks. */
  readonly own: string;
  readonly members: readonly Member[];
  readonly nodes: readonly Body[];
  readonly pods: readonly Body[];
  /** Whether it is known that Nodes can become Ready. */
  readonly awaitsReady: boolean;
}

/** What of etcd's members an answer to a control plane would show. */
function memberProblems({ own, members, nodes }: ObservedPeers): string[] {
  const silent = members.filter(
    (member) => member.machine !== own && (!member.lives || isUnhealthy(member, "etcd")),
  );
  const canSpareOne = members.length - silent.length - 1 > Math.floor(members.length / 2);
  const hasNode = ({ machine }: Member) => nodes.some(({ metadata }) => metadata.name === machine);
  return [
    ...members
      .filter((member) => isUnhealthy(member, "etcd-space"))
      .map(({ machine }) => `etcd member ${machine}: alarm NOSPACE`),
    ...silent
      .filter((member) => !canSpareOne || hasNode(member))
      .map(({ machine }) => `etcd member ${machine} is not healthy`),
  ];
}

/** The problems that cloud-init/bootstrap.sh finds with the other control planes, a line for each. */
export function peerProblems(seen: ObservedPeers): string[] {
  const { own, nodes, pods, awaitsReady } = seen;
  const peers = nodes.filter(
    ({ metadata }) =>
      metadata.name !== own &&
      metadata.labels?.["node-role.kubernetes.io/control-plane"] !== undefined,
  );
  return [
    ...memberProblems(seen),
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
