import type { VirtualMachine } from "../../machines";
import { components } from "../control-plane/static-pods";
import type { Body } from "../api";
import { isPodReady } from "../nodes/mirror-pods";
import { isReady, readyText } from "../nodes/node";

/**
 * What of a member can be unhealthy: a component, its kubelet, or etcd for want of space, which takes no
 * writes then.
 */
export const memberComponents = [...components, "kubelet", "etcd-space"] as const;
export type MemberComponent = (typeof memberComponents)[number];

/**
 * A control plane machine in etcd's list of members. Gone from Azure, it stays listed until
 * it is removed.
 */
export interface Member {
  readonly machine: string;
  readonly vmId: string;
  readonly lives: boolean;
  readonly unhealthy?: readonly MemberComponent[];
  readonly isOff?: boolean;
}

/** Of a machine that is off nothing answers. */
export const isUnhealthy = (
  { unhealthy = [], isOff = false }: Member,
  component: MemberComponent,
): boolean => unhealthy.includes(component) || (isOff && component !== "etcd-space");

/** etcd's list of members, as far as it decides whether there is an API. */
export class Members {
  constructor(readonly list: readonly Member[]) {}

  static of = (vm: VirtualMachine): Members => new Members([]).with(vm);

  /** etcd goes on while more than half of those it lists live, and are healthy. */
  get haveQuorum(): boolean {
    return (
      this.living.filter((member) => !isUnhealthy(member, "etcd")).length * 2 > this.list.length
    );
  }

  get allGone(): boolean {
    return this.living.length === 0;
  }

  has = ({ vmId }: VirtualMachine): boolean => this.living.some((member) => member.vmId === vmId);

  with = ({ name, vmId }: VirtualMachine): Members =>
    new Members([...this.list, { machine: name, vmId, lives: true }]);

  /** Without whatever a machine of this name has left in the list. */
  without = ({ name }: VirtualMachine): Members =>
    new Members(this.list.filter(({ machine }) => machine !== name));

  /** With this machine listed as before, but dead. */
  withDeleted = ({ vmId }: VirtualMachine): Members =>
    new Members(
      this.list.map((member) =>
        member.vmId === vmId ? { machine: member.machine, vmId, lives: false } : member,
      ),
    );

  /** With this component of a living machine unhealthy. */
  withFailure = (machine: string, component: MemberComponent): Members =>
    this.changing(machine, ({ unhealthy = [], ...member }) => ({
      ...member,
      unhealthy: [...new Set([...unhealthy, component])],
    }));

  /** With all components of a machine healthy. */
  withoutFailures = (machine: string): Members =>
    this.changing(machine, ({ unhealthy: _, ...member }) => member);

  /** With this machine on or off, as Azure has it. */
  withPower = ({ name, isOff }: VirtualMachine): Members =>
    this.changing(name, ({ isOff: _, ...member }) => (isOff ? { ...member, isOff } : member));

  private changing = (machine: string, change: (member: Member) => Member): Members =>
    new Members(
      this.list.map((member) =>
        member.lives && member.machine === machine ? change(member) : member,
      ),
    );

  get living(): readonly Member[] {
    return this.list.filter(({ lives }) => lives);
  }
}

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
