import {
  heldText,
  isOurs,
  keysOfTag,
  nextKeys,
  only,
  restoredKeys,
  SecretsKeys,
  stageText,
} from "../encryption";
import { AzureState } from "./azure/state";
import { isMadeFor, Memory } from "./machine-changes";
import { Settings } from "./settings/settings";
import { isControlPlaneName, Machine } from "./topology";

export interface KeysArgs {
  readonly settings: Pick<Settings, "clusterName" | "kubeadm" | "secretsKey">;
  /** The initialization of the cluster, and its restoration. */
  readonly id: string;
  readonly controlPlanes: readonly Machine[];
  readonly azure: Pick<AzureState, "machines">;
  /** Of this initialization, maybe from before a restoration. */
  readonly memory: Memory | undefined;
}

/** The keys of Secrets that an `up` leaves on every control plane. */
export interface PlannedKeys {
  /** Nothing where the operator has a configuration of their own. */
  readonly secretsKeys?: SecretsKeys;
  /** What is to be said of the change of a key that is under way. */
  readonly says?: string;
}

/**
 * One stage towards the key that the settings want, if there can be one: until an `up` has ended well
 * nobody knows that all control planes have what the cluster began with, and a control plane that
 * leaves at the end of this `up` encrypts with the old key until then. What is restored from a snapshot
 * may be encrypted with any key that the cluster ever had.
 */
export function planKeys({ settings, id, controlPlanes, azure, memory }: KeysArgs): PlannedKeys {
  const { secretsKey: wanted, kubeadm } = settings;
  if (!isOurs(kubeadm.apiServerExtraArgs)) return {};
  if (memory === undefined) {
    const keys = beganWith(id, azure) ?? only(wanted);
    const says = heldText(keys, wanted, "no up of this cluster has ended well yet");
    return { secretsKeys: keys, says };
  }
  // A cluster that was made before this program encrypted Secrets remembers nothing of them.
  const now = memory.secretsKeys ?? only(0);
  if (memory.initialization !== id) {
    const keys = restoredKeys(now);
    return { secretsKeys: keys, says: stageText(now, keys, wanted) };
  }
  const leaving = [...azure.machines.keys()].filter(
    (name) =>
      isControlPlaneName(settings, name) && !controlPlanes.some((stays) => stays.name === name),
  );
  if (leaving.length > 0) {
    return {
      secretsKeys: now,
      says: heldText(now, wanted, `this up removes ${leaving.join(", ")}`),
    };
  }
  const next = nextKeys(now, wanted);
  return { secretsKeys: next, says: stageText(now, next, wanted) };
}

/** What the first control plane was given, whether or not its step ended well. */
function beganWith(id: string, { machines }: KeysArgs["azure"]): SecretsKeys | undefined {
  const tag = [...machines.values()].find(
    (machine) => isMadeFor(id, machine) && machine.bootstrap?.secretsKeys !== undefined,
  )?.bootstrap?.secretsKeys;
  return tag === undefined ? undefined : keysOfTag(tag);
}
