import type { AzureState } from "../azure/state";
import { keysOfTag, nextKeys, only, rotationTexts, type RotationState } from "../kubeadm/rotation";
import { isOfThisCluster, type PreviousOutputs } from "./machine-changes";

/** As a machine's step shows what it was given. */
type Rotated = "encryptionKeys" | "cas" | "serviceAccountKeys";

interface RotationArgs {
  readonly what: Rotated;
  /** What the last update that ended well has left on every machine. */
  readonly now: RotationState | undefined;
  /** By the settings. */
  readonly wanted: number;
  readonly texts: ReturnType<typeof rotationTexts>;
  /** Why this update must not do a stage, of one of a cluster that is as the outputs say. */
  readonly whyNot: (previous: PreviousOutputs) => string | undefined;
  /** The initialization of the cluster, and its restoration. */
  readonly id: string;
  readonly azure: Pick<AzureState, "machines">;
  /** Of this initialization, maybe from before a restoration. */
  readonly previous: PreviousOutputs | undefined;
}

/** The keys that an update leaves on every machine that needs them, and what is to be said of their change. */
interface PlannedRotation {
  readonly keys: RotationState;
  readonly message?: string;
}

/**
 * One stage towards the key that the settings want, if there can be one: until an update has ended well
 * nobody knows that all machines have what the cluster began with.
 */
export function planRotation(args: RotationArgs): PlannedRotation {
  const { what, wanted, texts, id, azure } = args;
  const now = args.now ?? beganWith(id, azure, what) ?? only(wanted);
  const why = whyNot(args);
  if (why !== undefined) return { keys: now, message: texts.heldText(now, wanted, why) };
  const next = nextKeys(now, wanted);
  return { keys: next, message: texts.stageText(now, next, wanted) };
}

function whyNot({ id, previous, whyNot: more }: RotationArgs): string | undefined {
  if (previous === undefined) return "no update of this cluster has ended well yet";
  if (previous.initialization !== id) return "this update restores the cluster from a snapshot";
  return more(previous);
}

/** What the first control plane was given, whether or not its step ended well. */
export function beganWith(
  id: string,
  { machines }: Pick<AzureState, "machines">,
  what: Rotated,
): RotationState | undefined {
  const tag = [...machines.values()].find(
    (machine) => isOfThisCluster(id, machine) && machine.bootstrap?.[what] !== undefined,
  )?.bootstrap?.[what];
  return tag === undefined ? undefined : keysOfTag(tag);
}
