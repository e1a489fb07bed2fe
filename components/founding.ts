import { AzureFacts, BootstrapFacts } from "./azure-facts";
import { Settings } from "./settings";
import { Machine } from "./topology";

/** What an earlier `up` that ended well wrote into the stack's outputs. */
export interface Memory {
  readonly founded: boolean;
  readonly kubernetesVersion: string;
  readonly controlPlanes: number;
  readonly proxyMode?: Settings["proxyMode"];
  /** The mode before that one. */
  readonly proxyModeBefore?: Settings["proxyMode"];
}

export interface Founding {
  /**
   * True once there is a cluster to lose. From then on machines are replaced one at a time, and none
   * but the founder may run `kubeadm init`.
   */
  readonly founded: boolean;
  /** vmId of the founder; undefined until there is one. */
  readonly founder?: string;
  /** Why this `up` must not go on, one sentence each. */
  readonly problems: readonly string[];
}

type Wanted = Pick<
  Settings,
  "clusterName" | "kubernetesVersion" | "controlPlaneCount" | "acceptDataLoss" | "refound"
>;

/**
 * Decides from what Azure and the stack's outputs remember whether the cluster exists, and refuses what
 * would lose it.
 *
 * Both memories are needed: outputs are written only by an `up` that ended well, and Azure forgets a
 * machine that somebody deleted.
 */
export function decideFounding(
  settings: Wanted,
  controlPlanes: readonly { readonly plan: Machine; readonly generation: string }[],
  azure: Pick<AzureFacts, "machines" | "groupState">,
  memory: Memory | undefined,
): Founding {
  const { clusterName } = settings;
  const destroying = azure.groupState?.toLowerCase() === "deleting";
  if (destroying) {
    return {
      founded: true,
      problems: [
        `resource group ${clusterName} is still being deleted; wait for it (az group wait --deleted -n ${clusterName}), ` +
          "finish `pulumi destroy`, then run `pulumi up` again",
      ],
    };
  }

  const known = controlPlanes.map(({ plan, generation }) => {
    const facts = azure.machines.get(plan.name);
    return {
      name: plan.name,
      bootstrap: facts?.bootstrap,
      kubernetesVersion: facts?.kubernetesVersion,
      isReplaced: facts !== undefined && facts.generation !== generation,
    };
  });
  // Every step but the first is ordered only after the first one ended well, whatever became of that since.
  const isFounded =
    memory?.founded === true ||
    known.some(({ bootstrap }) => bootstrap?.state === "Succeeded") ||
    [...azure.machines].some(
      ([name, { bootstrap }]) => bootstrap !== undefined && name !== known[0]?.name,
    );
  if (!isFounded || settings.refound) return { founded: false, problems: [] };

  const members = known.filter(({ bootstrap }) => bootstrap !== undefined);
  const founder = members.find(({ bootstrap }) => bootstrap?.founder)?.bootstrap?.founder;
  const losesData = members.length === 1 && members[0]!.isReplaced;
  if (losesData && settings.acceptDataLoss) return { founded: false, problems: [] };

  return {
    founded: true,
    founder,
    problems: [
      ...quorumProblems(members.length, memory, clusterName),
      ...(losesData ? [onlyMemberProblem(members[0]!.name)] : []),
      ...orderProblems(known, members.length),
      ...versionProblems(settings, known, memory),
      ...shrinkProblems(settings, azure),
    ],
  };
}

function quorumProblems(alive: number, memory: Memory | undefined, clusterName: string): string[] {
  const had = memory?.controlPlanes ?? 1;
  const needed = Math.floor(had / 2) + 1;
  if (alive >= needed) return [];
  return [
    `cluster ${clusterName} was founded with ${had} control plane machine(s), and Azure has ${alive} of them left, ` +
      `fewer than the ${needed} that etcd needs. Joining is impossible and founding anew would silently lose everything in it. ` +
      "If a destroy was interrupted, finish it: pulumi destroy. " +
      "If the machines are lost and you accept a new, empty cluster: pulumi config set refound true, then pulumi up, then pulumi config rm refound",
  ];
}

const onlyMemberProblem = (name: string): string =>
  `${name} is the only control plane machine and this change would replace it, with all that the cluster knows. ` +
  "Take the change back, or set controlPlaneCount to 3 first (pulumi config set controlPlaneCount 3), " +
  "or, if the cluster may be lost: pulumi config set acceptDataLoss true";

/**
 * Replacing comes in the machines' order: one that is not well must be so again before another one goes. A step
 * that failed may be that of a member or of a machine that never became one; Azure does not tell.
 */
function orderProblems(
  known: readonly { name: string; bootstrap?: BootstrapFacts; isReplaced: boolean }[],
  alive: number,
): string[] {
  const unwell = known.findLast(({ bootstrap }) => bootstrap?.state !== "Succeeded");
  const replaced = known.find(({ bootstrap, isReplaced }) => isReplaced && bootstrap !== undefined);
  if (unwell === undefined || replaced === undefined || alive === 1) return [];
  if (known.indexOf(replaced) >= known.indexOf(unwell)) return [];
  return [
    `this change would replace ${replaced.name} while ${unwell.name} is not known to be a member, which can cost etcd its majority. ` +
      `Take the change back, run pulumi up until ${unwell.name} has joined, then make the change`,
  ];
}

function versionProblems(
  { kubernetesVersion }: Wanted,
  known: readonly { kubernetesVersion?: string }[],
  memory: Memory | undefined,
): string[] {
  const versions = [memory?.kubernetesVersion, ...known.map((one) => one.kubernetesVersion)];
  const other = versions.find((version) => version !== undefined && version !== kubernetesVersion);
  if (other === undefined) return [];
  return [
    `kubernetesVersion is ${kubernetesVersion} and the cluster runs ${other}; this program cannot upgrade a living cluster yet, ` +
      `and new machines of another version would break it (pulumi config set kubernetesVersion ${other})`,
  ];
}

function shrinkProblems(
  { clusterName, controlPlaneCount }: Wanted,
  azure: Pick<AzureFacts, "machines">,
): string[] {
  const numbers = [...azure.machines.keys()]
    .filter((name) => name.startsWith(`${clusterName}-cp-`))
    .map((name) => Number(name.slice(`${clusterName}-cp-`.length)));
  const highest = Math.max(0, ...numbers.filter(Number.isInteger));
  if (highest <= controlPlaneCount) return [];
  return [
    `controlPlaneCount is ${controlPlaneCount} and ${clusterName}-cp-${highest} exists; taking control plane machines away at once ` +
      `costs etcd its majority, and this program has no step for it (pulumi config set controlPlaneCount ${highest})`,
  ];
}
