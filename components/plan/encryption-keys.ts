import {
  encryptionFlag,
  heldText,
  isOurs,
  nameOf,
  restoredKeys,
  stageText,
} from "../kubeadm/encryption";
import { keysOfTag, nextKeys, only, RotationState } from "../kubeadm/rotation";
import { AzureState } from "../azure/state";
import { isOfThisCluster, PreviousOutputs } from "./machine-changes";
import { entry, toRemove, toSet } from "../settings/problem";
import { Settings } from "../settings/settings";
import { isControlPlaneName, MachinePlan } from "../settings/topology";

export interface KeysArgs {
  readonly settings: Pick<Settings, "clusterName" | "kubeadm" | "encryptionKeyGeneration">;
  /** The initialization of the cluster, and its restoration. */
  readonly id: string;
  readonly controlPlanes: readonly MachinePlan[];
  readonly azure: Pick<AzureState, "machines">;
  /** Of this initialization, maybe from before a restoration. */
  readonly previous: PreviousOutputs | undefined;
}

/** The keys of Secrets that an update leaves on every control plane. */
interface PlannedKeys {
  /** Nothing where the operator has a configuration of their own. */
  readonly encryptionKeys?: RotationState;
  /** What is to be said of the change of a key that is under way. */
  readonly message?: string;
  /** Why this update must not begin: no API server could read the Secrets that there are. */
  readonly problem?: string;
}

/**
 * One stage towards the key that the settings want, if there can be one: until an update has ended well
 * nobody knows that all control planes have what the cluster began with, and a control plane that
 * leaves at the end of this update encrypts with the old key until then. What is restored from a snapshot
 * may be encrypted with any key that the cluster ever had.
 */
export function planEncryptionKeys({
  settings,
  id,
  controlPlanes,
  azure,
  previous,
}: KeysArgs): PlannedKeys {
  const { encryptionKeyGeneration: wanted, kubeadm } = settings;
  const began = previous === undefined ? beganWith(id, azure, "encryptionKeys") : undefined;
  if (!isOurs(kubeadm.apiServerExtraArgs)) {
    return { problem: leavingProblem(previous?.encryptionKeys ?? began) };
  }
  if (previous === undefined) {
    const keys = began ?? only(wanted);
    const message = heldText(keys, wanted, "no update of this cluster has ended well yet");
    return { encryptionKeys: keys, message };
  }
  if (previous.ownEncryption && wanted !== 0) return { problem: returningProblem() };
  // With a configuration of the operator's own it has none.
  const now = previous.encryptionKeys ?? only(0, previous.pastEncryptionKeys);
  if (previous.initialization !== id) {
    const keys = restoredKeys(now);
    return { encryptionKeys: keys, message: stageText(now, keys, wanted) };
  }
  const leaving = leavingControlPlanes({ settings, controlPlanes, azure });
  if (leaving.length > 0) {
    return {
      encryptionKeys: now,
      message: heldText(now, wanted, `this update removes ${leaving.join(", ")}`),
    };
  }
  const next = nextKeys(now, wanted);
  return { encryptionKeys: next, message: stageText(now, next, wanted) };
}

/** What is remembered of its keys while the operator has a configuration of their own. */
export const pastKeys = (previous: PreviousOutputs | undefined): readonly number[] | undefined =>
  previous?.encryptionKeys?.past ?? previous?.pastEncryptionKeys;

const own = entry("kubeadm.apiServerExtraArgs", encryptionFlag);

/** The operator's configuration takes the place of keys that it does not have. */
function leavingProblem(had: RotationState | undefined): string | undefined {
  const unknown = had?.keys.filter((key) => key !== 0) ?? [];
  if (unknown.length === 0) return undefined;
  return (
    `${own} names a configuration of your own, and Secrets are encrypted with ${unknown.map(nameOf).join(", ")} of this program, which it does ` +
    `not have: no API server could read them. Take it back (${toRemove(own)}) and have them stored in clear first: ` +
    `${toSet("encryptionKeyGeneration", 0)}, then pulumi up until it says nothing of the key. Then set your own again`
  );
}

/** Of what the operator's configuration has encrypted, this program knows no key. */
const returningProblem = (): string =>
  `${own} is gone, and Secrets may be encrypted with the keys of that configuration, which this program does not have: no API server could ` +
  "read them. Put it back, with identity as its first provider, and store all Secrets once more (kubectl get secrets -A -o json | kubectl replace -f -). " +
  `When all are in clear, take it away and say so (${toSet("encryptionKeyGeneration", 0)}), run pulumi up, and set another key after that`;

/** Control planes that this update removes. */
export const leavingControlPlanes = ({
  settings,
  controlPlanes,
  azure,
}: {
  readonly settings: Pick<Settings, "clusterName">;
  readonly controlPlanes: readonly MachinePlan[];
  readonly azure: Pick<AzureState, "machines">;
}): string[] =>
  [...azure.machines.keys()].filter(
    (name) =>
      isControlPlaneName(settings, name) && !controlPlanes.some((stays) => stays.name === name),
  );

/** What the first control plane was given, whether or not its step ended well. */
export function beganWith(
  id: string,
  { machines }: Pick<AzureState, "machines">,
  what: "encryptionKeys" | "cas" | "serviceAccountKeys",
): RotationState | undefined {
  const tag = [...machines.values()].find(
    (machine) => isOfThisCluster(id, machine) && machine.bootstrap?.[what] !== undefined,
  )?.bootstrap?.[what];
  return tag === undefined ? undefined : keysOfTag(tag);
}
