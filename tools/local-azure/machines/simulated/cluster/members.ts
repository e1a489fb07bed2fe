import { createHash } from "node:crypto";

import type { VirtualMachine } from "../../machines";
import type { Body } from "../api";
import { components } from "../control-plane/static-pods";
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

export interface Ended {
  readonly exitCode: number;
  readonly output: string;
  readonly members: Members;
}

/** As etcd prints the id of a member: every join of a machine makes another one. */
export const memberId = ({ vmId }: Pick<Member, "vmId">): string =>
  createHash("sha256").update(vmId).digest("hex").slice(0, 16);

/** What is known of the machines around etcd. */
interface Host {
  readonly vmOf: (name: string) => VirtualMachine | undefined;
  /** Of the image in a control plane's manifest of etcd. */
  readonly versionOf: (vm: VirtualMachine) => string;
}

/**
 * What `etcdctl` prints and does, with the list of members that stands for etcd's own here: the
 * one etcd that runs knows nothing of the other machines.
 */
function etcdctl(args: readonly string[], members: Members, { vmOf, versionOf }: Host): Ended {
  const printed = (output: string, after = members): Ended => ({
    exitCode: 0,
    output: `${output}\n`,
    members: after,
  });
  const fails = (output: string): Ended => ({ exitCode: 1, output: `Error: ${output}\n`, members });
  const words = args.filter((arg) => !arg.startsWith("--"));
  const [verb = "", id = ""] = ["member", "endpoint"].includes(words[0]!)
    ? [`${words[0]} ${words[1]}`, words[2]]
    : words;
  const named = members.list.find((member) => memberId(member) === id);
  switch (verb) {
    case "member list":
      return printed(members.list.map((member) => lineOf(member, vmOf(member.machine))).join("\n"));
    case "endpoint health":
      return healthOf(members, vmOf);
    case "endpoint status":
      return printed(JSON.stringify(statusOf(args, members, { vmOf, versionOf })));
    case "move-leader":
      if (named === undefined) return fails("etcdserver: bad leader transferee");
      return asksSilent(args, members, vmOf)
        ? fails("context deadline exceeded")
        : printed(`Leadership transferred to ${id}`);
    case "member remove": {
      if (named === undefined) return fails("etcdserver: Member not found");
      const after = new Members(members.list.filter((member) => member !== named));
      return after.haveQuorum
        ? printed(`Member ${id} removed from cluster`, after)
        : fails("etcdserver: unhealthy cluster");
    }
    default:
      return fails(`unknown command "${words.join(" ")}" for "etcdctl"`);
  }
}

const endpointsOf = (args: readonly string[]): readonly string[] =>
  (args.findLast((arg) => arg.startsWith("--endpoints=")) ?? "").replace(/^.*=/, "").split(",");

/** It asks one endpoint after another until it has found the leader, and the last one is whose turn never comes. */
function asksSilent(
  args: readonly string[],
  members: Members,
  vmOf: (name: string) => VirtualMachine | undefined,
): boolean {
  const asked = endpointsOf(args).slice(0, -1);
  return members.list.some(
    (member) =>
      (!member.lives || isUnhealthy(member, "etcd")) &&
      asked.includes(clientUrl(vmOf(member.machine))),
  );
}

/** As `--write-out=json` has it of those that are asked, with what is read of it here. */
const statusOf = (args: readonly string[], members: Members, { vmOf, versionOf }: Host) =>
  members.list.flatMap(({ machine }) => {
    const vm = vmOf(machine);
    return vm !== undefined && endpointsOf(args).includes(clientUrl(vm))
      ? [{ Endpoint: clientUrl(vm), Status: { version: versionOf(vm) } }]
      : [];
  });

/** As each member answers for itself; an alarm is every member's. */
function healthOf(members: Members, vmOf: (name: string) => VirtualMachine | undefined): Ended {
  const alarm = members.list.some((member) => isUnhealthy(member, "etcd-space"));
  const lines = members.list.map((member) => {
    const why =
      !member.lives || isUnhealthy(member, "etcd") || !members.haveQuorum
        ? "context deadline exceeded"
        : alarm
          ? "Active Alarm(s): NOSPACE "
          : undefined;
    const url = clientUrl(vmOf(member.machine));
    return why === undefined
      ? `${url} is healthy: successfully committed proposal: took = 9.1ms`
      : `${url} is unhealthy: failed to commit proposal: ${why}`;
  });
  const hasUnhealthy = lines.some((line) => line.includes(" is unhealthy: "));
  return {
    exitCode: hasUnhealthy ? 1 : 0,
    output: `${[...lines, ...(hasUnhealthy ? ["Error: unhealthy cluster"] : [])].join("\n")}\n`,
    members,
  };
}

const lineOf = (member: Member, vm: VirtualMachine | undefined): string => {
  return [memberId(member), "started", member.machine, peerUrl(vm), clientUrl(vm), "false"].join(
    ", ",
  );
};

const urlOf =
  (port: number) =>
  (vm: VirtualMachine | undefined): string =>
    `https://${vm?.privateAddress ?? "0.0.0.0"}:${port}`;
const peerUrl = urlOf(2380);
const clientUrl = urlOf(2379);

const certificates = "/etc/kubernetes/pki/etcd";

/**
 * What etcd answers to the containers of a pod, one after another as init containers run; undefined
 * for a pod that does not run etcdctl.
 */
export function runEtcdctlPod(
  { spec }: Body,
  members: Members,
  host: Host,
): (Ended & { readonly outputs: ReadonlyMap<string, string> }) | undefined {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  if (!containers.every(({ command }) => command?.[0] === "etcdctl")) return undefined;
  const outputs = new Map<string, string>();
  let ended: Ended = { exitCode: 0, output: "", members };
  for (const { name, command, volumeMounts = [] } of containers) {
    const reaches = spec.hostNetwork && isMounted(volumeMounts, spec.volumes ?? []);
    ended = reaches
      ? etcdctl(command.slice(1), ended.members, host)
      : {
          ...ended,
          exitCode: 1,
          output: `Error: open ${certificates}/ca.crt: no such file or directory\n`,
        };
    outputs.set(name, ended.output);
    if (ended.exitCode !== 0) break;
  }
  return { ...ended, outputs };
}

const isMounted = (mounts: readonly Body[], volumes: readonly Body[]) =>
  mounts.some(
    ({ name, mountPath }) =>
      mountPath === certificates &&
      volumes.some((volume) => volume.name === name && volume.hostPath?.path === certificates),
  );

/** The version that the image in a manifest has. */
export const etcdVersionIn = (manifest: string): string =>
  /image: \S+\/etcd:(\d+\.\d+\.\d+)/.exec(manifest)?.[1] ?? "unknown";

/** Whether a member's machine would run a pod at this moment. */
export const runsPods = (member: Member): boolean =>
  member.lives && !isUnhealthy(member, "kubelet") && !isUnhealthy(member, "etcd");

export interface PodResult {
  readonly exitCode: number;
  readonly output: string;
}

const script = "/opt/zoned/etcd-snapshot.sh";

type Architecture = "x64" | "Arm64";

const libraries = {
  x64: { folder: "x86_64-linux-gnu", loader: "ld-linux-x86-64.so.2" },
  Arm64: { folder: "aarch64-linux-gnu", loader: "ld-linux-aarch64.so.1" },
};

/** A machine's own loader and `chroot`, by which a container without either enters the machine. */
const entering = (
  root: string,
  { folder, loader }: (typeof libraries)[Architecture],
): readonly string[] => [
  `${root}/usr/lib/${folder}/${loader}`,
  "--library-path",
  `${root}/usr/lib/${folder}`,
  `${root}/usr/sbin/chroot`,
  root,
];

/**
 * What a pod ends with that runs a machine's script to save etcd; undefined for another pod.
 *
 * @param save what the script does there; nothing where the machine has no such script
 */
export async function runSnapshotPod(
  { spec }: Body,
  save: (() => Promise<void>) | undefined,
  architecture: Architecture = "x64",
): Promise<PodResult | undefined> {
  const [{ command = [], volumeMounts = [], securityContext }] = spec.containers;
  if (!command.includes(script)) return undefined;
  const root = volumeMounts.find(
    ({ name, readOnly }: Body) => !readOnly && isRoot(name, spec.volumes ?? []),
  )?.mountPath;
  const wanted = [...entering(root, libraries[architecture]), script, "save", "any"];
  if (root === undefined || wanted.join("\n") !== command.join("\n")) {
    return { exitCode: 128, output: `exec: "${command[0]}": no such file or directory\n` };
  }
  if (!securityContext?.privileged) {
    return { exitCode: 125, output: `cannot change root directory to '${root}'\n` };
  }
  if (!spec.hostNetwork) {
    return { exitCode: 1, output: "etcd of this machine does not answer\n" };
  }
  if (save === undefined) {
    return {
      exitCode: 127,
      output: `chroot: failed to run command '${script}': No such file or directory\n`,
    };
  }
  return save().then(
    () => ({ exitCode: 0, output: "" }),
    ({ message }: Error) => ({ exitCode: 1, output: `saving etcd\n${message}\n` }),
  );
}

const isRoot = (volume: string, volumes: readonly Body[]): boolean =>
  volumes.some(({ name, hostPath }) => name === volume && hostPath?.path === "/");
