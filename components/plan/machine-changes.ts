import type { RotationState, ServiceAccountKeys } from "../kubeadm/rotations";
import { AzureState, MachineState } from "../azure/state";
import { FixedSettings } from "./fixed-settings";
import { MachinePlan } from "../settings/topology";
import { MachineRecord } from "../machine/generation";

/**
 * What an earlier update whose steps ended well wrote into the stack's outputs, where no cleanup of tags removes it.
 * Add-ons and deletions come after that, and may have failed.
 */
export interface PreviousOutputs {
  /** The initialization, and the restoration if the cluster was restored; see initialization.ts. */
  readonly initialization: string;
  /** Undefined where an update of before it was noted ended well last. */
  readonly subscriptionId?: string;
  /** vmId of the machine that ran `kubeadm init`. */
  readonly initialControlPlane?: string;
  readonly controlPlanes: number;
  /** How often etcd is saved, such as 1h; undefined when it is not. For `npm run doctor`. */
  readonly etcdBackups?: string;
  /** By whose tokens people log in; undefined for nobody's. For `npm run doctor`. */
  readonly issuer?: string;
  /** As that update had it: the same value does not restore a cluster that is lost later. */
  readonly restoreFrom?: string;
  /** The identity that exists already and that its control planes have, by Azure's id. */
  readonly identityId?: string;
  /** The identity that exists already and by which all machines' kubelets pull images, by Azure's id. */
  readonly kubeletIdentityId?: string;
  /** What this cluster keeps for its life. */
  readonly settings: FixedSettings;
  /** What every control plane has; nothing where the operator has a configuration of their own. */
  readonly encryptionKeys?: RotationState;
  /** The CAs that every machine has. */
  readonly cas: RotationState;
  /** The keys of service accounts that every control plane has. */
  readonly serviceAccountKeys: ServiceAccountKeys;
  /** The issuers of service accounts' tokens that every control plane admits; kubeadm's alone where there is nothing. */
  readonly tokenIssuers?: readonly [string, ...string[]];
  /** Whether the cloud provider and the disk driver log in by tokens of their service accounts. */
  readonly isFederated?: true;
  /** Whether API servers have a configuration of the operator's own. */
  readonly ownEncryption?: true;
  /** Keys that went before that, of an earlier initialization too: a snapshot may need one. */
  readonly pastEncryptionKeys?: readonly number[];
  /** Of a private API. */
  readonly apiAddress?: string;
  /** Hash of what the API's balancer is. */
  readonly balancer: string;
  /** Whether it has Azure's disk driver. */
  readonly diskDriver?: true;
  /** What is to run in it, such as `DaemonSet kube-system/kube-proxy`; undefined where an update of before it was noted ended well last. For `npm run doctor`. */
  readonly addOns?: readonly string[];
  /** Names of those that were made, also where Azure offers their disks no longer. */
  readonly storageClasses: readonly string[];
  /** Names of the tags that the settings gave every resource. */
  readonly tags: readonly string[];
  /** By name of the VM. */
  readonly machines: Readonly<Record<string, MachineRecord>>;
}

/**
 * What of an id stays the same when the cluster is restored from a snapshot: workers, objects and
 * certificates are those of before.
 */
export const clusterIdOf = (id: string): string => id.split("-").slice(0, 2).join("-");

const isOfCluster = (id: string, other: string): boolean => clusterIdOf(id) === clusterIdOf(other);

/** The previous, unless it is that of an earlier initialization. */
export const previousOf = (
  id: string,
  previous: PreviousOutputs | undefined,
): PreviousOutputs | undefined =>
  previous !== undefined && isOfCluster(id, previous.initialization) ? previous : undefined;

/** What a machine's member of the cluster is configured with, by the step that ended well last. */
interface MemberState {
  readonly kubernetesVersion?: string;
  /** Hash over everything that the step configures kubeadm, kubelet and static pods with. */
  readonly configuration?: string;
}

/** What Azure shows of a step that succeeded, else what the outputs remember. */
export function memberState(
  machine: MachineState | undefined,
  previous: MachineRecord | undefined,
): MemberState {
  const step = machine?.bootstrap;
  const shown = step?.state === "Succeeded" ? step : undefined;
  return {
    kubernetesVersion: shown?.kubernetesVersion ?? previous?.kubernetesVersion,
    configuration: shown?.configuration ?? previous?.configuration,
  };
}

/** A machine as the settings want it. */
export interface WantedMachine {
  readonly plan: MachinePlan;
  readonly generation: string;
  readonly replacementInputs: Readonly<Record<string, string>>;
  /** Empty where the settings name none. */
  readonly imageVersion: string;
  readonly kubernetesVersion: string;
  readonly configuration: string;
}

/** What an update would do to a machine that exists: no pod on it goes on undisturbed. */
export interface MachineChange {
  readonly machine: string;
  readonly action: "replace" | "resize" | "upgrade" | "reconfigure" | "remove";
  /** What it is made with, and what it would be made with. */
  readonly reasons: readonly string[];
}

/** Whether a machine was made for this initialization; a missing tag proves nothing. */
export const isOfThisCluster = (id: string, { initialization = id }: MachineState): boolean =>
  isOfCluster(id, initialization);

/** Whether a control plane belongs to the etcd of now, and not to one that a snapshot replaced. */
export const isMemberOf = (id: string, { initialization = id }: MachineState): boolean =>
  initialization === id;

/** Whether a machine that runs is no member of its cluster any more. */
export const hasLeft = (machine: MachineState | undefined): boolean =>
  machine?.removedFromEtcd === true || machine?.lacksNode === true;

/** Whether a machine would be replaced; what neither Azure nor the outputs know has not changed. */
export const isReplaced = (
  machine: MachineState,
  previous: MachineRecord | undefined,
  id: string,
  wanted: Pick<WantedMachine, "plan" | "generation" | "imageVersion">,
): boolean =>
  hasLeft(machine) ||
  !(wanted.plan.role === "control-plane" ? isMemberOf : isOfThisCluster)(id, machine) ||
  (machine.generation ?? previous?.generation ?? wanted.generation) !== wanted.generation ||
  isOfOtherImage(machine, wanted);

const isOfOtherImage = (
  { image }: MachineState,
  { imageVersion }: Pick<WantedMachine, "imageVersion">,
): boolean => imageVersion !== "" && image !== undefined && image !== imageVersion;

const isOtherSize = ({ size }: MachineState, { plan }: Pick<WantedMachine, "plan">): boolean =>
  size.toLowerCase() !== plan.size.toLowerCase();

/** What a machine's step would do to the member that it is. */
function memberChanges(before: MemberState, wanted: WantedMachine): MachineChange[] {
  const machine = wanted.plan.name;
  const { kubernetesVersion } = wanted;
  if ((before.kubernetesVersion ?? kubernetesVersion) !== kubernetesVersion) {
    const reasons = [`${before.kubernetesVersion} -> ${kubernetesVersion}`];
    return [{ machine, action: "upgrade", reasons }];
  }
  return (before.configuration ?? wanted.configuration) === wanted.configuration
    ? []
    : [{ machine, action: "reconfigure", reasons: [] }];
}

/** Why it is replaced, as far as the outputs remember what it was made with, and what else becomes of it. */
function replacementReasons(
  machine: MachineState,
  previous: MachineRecord | undefined,
  wanted: WantedMachine,
): string[] {
  const now = wanted.replacementInputs;
  const before = previous?.replacementInputs ?? now;
  const names = new Set([...Object.keys(before), ...Object.keys(now)]);
  // Only machines with a disk of their host's have their size among these.
  const parts = [...names].filter((name) => name !== "size" && before[name] !== now[name]);
  return [
    ...(machine.removedFromEtcd
      ? [
          "it is no member of etcd any more, since an update that was to replace or remove it has ended half-way",
        ]
      : []),
    ...(machine.lacksNode ? ["it runs, and the cluster has no Node of it"] : []),
    ...parts.map((name) => `${name} ${before[name] || "not set"} -> ${now[name] || "not set"}`),
    ...(isOfOtherImage(machine, wanted)
      ? [`imageVersion ${machine.image} -> ${wanted.imageVersion}`]
      : []),
    ...(isOtherSize(machine, wanted) ? [`size ${machine.size} -> ${wanted.plan.size}`] : []),
    ...memberChanges(memberState(machine, previous), wanted).flatMap(({ reasons }) => reasons),
  ];
}

/** The machines that this update creates, in place of others or not. */
export const createdMachines = (
  id: string,
  wanted: readonly Pick<WantedMachine, "plan" | "generation" | "imageVersion">[],
  azure: Pick<AzureState, "machines">,
  previous: PreviousOutputs | undefined,
): MachinePlan[] =>
  wanted
    .filter((one) => {
      const machine = azure.machines.get(one.plan.name);
      const remembered = previous?.machines[one.plan.name];
      return machine === undefined || isReplaced(machine, remembered, id, one);
    })
    .map(({ plan }) => plan);

/**
 * This cluster's machines that the settings no longer name; not what somebody else has made in the
 * resource group.
 */
export const leavingMachines = (
  id: string,
  planned: readonly MachinePlan[],
  { machines }: Pick<AzureState, "machines">,
  previous: PreviousOutputs | undefined,
): string[] =>
  [...machines]
    .filter(([name, machine]) => {
      const isOurs = machine.initialization !== undefined || previous?.machines[name] !== undefined;
      const stays = planned.some((one) => one.name === name);
      return isOurs && isOfThisCluster(id, machine) && !stays;
    })
    .map(([name]) => name);

/**
 * Everything that this update would do to the cluster's machines, in their order; those to be removed
 * come last. What an earlier initialization has left is no part of the cluster, nor is a machine that
 * somebody else has made in the resource group.
 */
export function machineChanges(
  id: string,
  wanted: readonly WantedMachine[],
  azure: Pick<AzureState, "machines">,
  previous: PreviousOutputs | undefined,
): MachineChange[] {
  const machines = new Map(
    [...azure.machines].filter(([, machine]) => isOfThisCluster(id, machine)),
  );
  const planned = wanted.map(({ plan }) => plan);
  return [
    ...wanted.flatMap((one): MachineChange[] => {
      const { plan } = one;
      const machine = machines.get(plan.name);
      const wasMember = previous?.machines[plan.name] !== undefined;
      if (machine === undefined || (machine.bootstrap === undefined && !wasMember)) return [];
      if (isReplaced(machine, previous?.machines[plan.name], id, one)) {
        const reasons = replacementReasons(machine, previous?.machines[plan.name], one);
        return [{ machine: plan.name, action: "replace", reasons }];
      }
      const ofMember = memberChanges(memberState(machine, previous?.machines[plan.name]), one);
      if (!isOtherSize(machine, one)) return ofMember;
      const reasons = [
        `${machine.size} -> ${plan.size}`,
        ...ofMember.flatMap((change) => change.reasons),
      ];
      return [{ machine: plan.name, action: "resize", reasons }];
    }),
    ...leavingMachines(id, planned, azure, previous).map((machine): MachineChange => ({
      machine,
      action: "remove",
      reasons: [],
    })),
  ];
}
