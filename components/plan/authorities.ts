import { heldText, stageText } from "../kubeadm/authorities";
import { nextKeys, only, type RotatingKeys } from "../kubeadm/rotation";
import type { AzureState } from "../azure/state";
import type { Memory } from "./machine-changes";
import { beganWith, leavingOf } from "./secrets-keys";
import type { Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";

export interface AuthoritiesArgs {
  readonly settings: Pick<Settings, "clusterName" | "certificateAuthority" | "kubernetesVersion">;
  /** The initialization of the cluster, and its restoration. */
  readonly id: string;
  readonly controlPlanes: readonly MachinePlan[];
  /** Machines that this `up` makes. */
  readonly created: readonly MachinePlan[];
  readonly azure: Pick<AzureState, "machines">;
  /** Of this initialization, maybe from before a restoration. */
  readonly memory: Memory | undefined;
}

/** The CAs that an `up` leaves on every machine, and what is to be said of their change. */
interface PlannedAuthorities {
  readonly authorities: RotatingKeys;
  readonly message?: string;
}

/**
 * One stage towards the CA that the settings want, unless this `up` does something else to the
 * control plane: the last `up` that ended well says what every machine has.
 */
export function planAuthorities(args: AuthoritiesArgs): PlannedAuthorities {
  const { settings, id, azure, memory } = args;
  const wanted = settings.certificateAuthority;
  const now =
    memory === undefined
      ? (beganWith(id, azure, "authorities") ?? only(wanted))
      : (memory.authorities ?? only(1));
  const why = whyNot(args);
  if (why !== undefined) return { authorities: now, message: heldText(now, wanted, why) };
  const next = nextKeys(now, wanted);
  return { authorities: next, message: stageText(now, next, wanted) };
}

function whyNot(args: AuthoritiesArgs): string | undefined {
  const { settings, id, controlPlanes, created, memory } = args;
  if (memory === undefined) return "no up of this cluster has ended well yet";
  if (memory.initialization !== id) return "this up restores the cluster from a snapshot";
  const { kubernetesVersion } = settings;
  if (Object.values(memory.machines).some((one) => one.kubernetesVersion !== kubernetesVersion)) {
    return `this up upgrades Kubernetes to ${kubernetesVersion}`;
  }
  const leaving = leavingOf(args);
  if (leaving.length > 0) return `this up removes ${leaving.join(", ")}`;
  // It asks the API by a name behind which are other control planes, of the stage before.
  const made = controlPlanes.filter((one) => created.includes(one)).map(({ name }) => name);
  return made.length > 0 ? `this up makes ${made.join(", ")}` : undefined;
}
