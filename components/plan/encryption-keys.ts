import {
  encryptionFlag,
  heldText,
  isOurs,
  nameOf,
  restoredKeys,
  stageText,
} from "../kubeadm/encryption";
import { only, RotationState } from "../kubeadm/rotation";
import { AzureState } from "../azure/state";
import { PreviousOutputs } from "./machine-changes";
import { beganWith, planRotation } from "./rotation";
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
 * One stage towards the key that the settings want, unless a control plane leaves at the end of this update: it
 * encrypts with the old key until then. What is restored from a snapshot may be encrypted with any key that the
 * cluster ever had.
 */
export function planEncryptionKeys(args: KeysArgs): PlannedKeys {
  const { settings, id, azure, previous } = args;
  const { encryptionKeyGeneration: wanted, kubeadm } = settings;
  if (!isOurs(kubeadm.apiServerExtraArgs)) {
    const began = previous === undefined ? beganWith(id, azure, "encryptionKeys") : undefined;
    return { problem: leavingProblem(previous?.encryptionKeys ?? began) };
  }
  if (previous?.ownEncryption && wanted !== 0) return { problem: returningProblem() };
  // With a configuration of the operator's own it has none.
  const now = previous && (previous.encryptionKeys ?? only(0, previous.pastEncryptionKeys));
  if (now !== undefined && previous?.initialization !== id) {
    const keys = restoredKeys(now);
    return { encryptionKeys: keys, message: stageText(now, keys, wanted) };
  }
  const leaving = leavingControlPlanes(args);
  const { keys, message } = planRotation({
    ...args,
    what: "encryptionKeys",
    now,
    wanted,
    texts: { heldText, stageText },
    whyNot: () => (leaving.length > 0 ? `this update removes ${leaving.join(", ")}` : undefined),
  });
  return { encryptionKeys: keys, message };
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
