import { heldText, stageText } from "../kubeadm/certificate-authorities";
import { nextKeys, only, type RotationState } from "../kubeadm/rotation";
import type { AzureState } from "../azure/state";
import { leavingMachines, type PreviousOutputs } from "./machine-changes";
import { beganWith, leavingControlPlanes } from "./encryption-keys";
import type { Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";

export interface CasArgs {
  readonly settings: Pick<Settings, "clusterName" | "caGeneration" | "kubernetesVersion">;
  /** The initialization of the cluster, and its restoration. */
  readonly id: string;
  readonly controlPlanes: readonly MachinePlan[];
  readonly workers: readonly MachinePlan[];
  /** Machines that this update makes. */
  readonly created: readonly MachinePlan[];
  readonly azure: Pick<AzureState, "machines">;
  /** Of this initialization, maybe from before a restoration. */
  readonly previous: PreviousOutputs | undefined;
}

/** The CAs that an update leaves on every machine, and what is to be said of their change. */
interface PlannedCas {
  readonly cas: RotationState;
  readonly message?: string;
}

/**
 * One stage towards the CA that the settings want, unless this update does something else to the
 * control plane: the last update that ended well says what every machine has.
 */
export function planCas(args: CasArgs): PlannedCas {
  const { settings, id, azure, previous } = args;
  const wanted = settings.caGeneration;
  const now = previous?.cas ?? beganWith(id, azure, "cas") ?? only(wanted);
  const why = whyNot(args);
  if (why !== undefined) return { cas: now, message: heldText(now, wanted, why) };
  const next = nextKeys(now, wanted);
  return { cas: next, message: stageText(now, next, wanted) };
}

function whyNot(args: CasArgs): string | undefined {
  const { settings, id, controlPlanes, workers, created, azure, previous } = args;
  if (previous === undefined) return "no update of this cluster has ended well yet";
  if (previous.initialization !== id) return "this update restores the cluster from a snapshot";
  const { kubernetesVersion } = settings;
  if (Object.values(previous.machines).some((one) => one.kubernetesVersion !== kubernetesVersion)) {
    return `this update upgrades Kubernetes to ${kubernetesVersion}`;
  }
  // A machine that cannot go yet goes later by its kubeconfig of now, which has to trust the API then.
  const leaving = new Set([
    ...leavingControlPlanes(args),
    ...leavingMachines(id, [...controlPlanes, ...workers], azure, previous),
  ]);
  if (leaving.size > 0) return `this update removes ${[...leaving].join(", ")}`;
  // It asks the API by a name behind which are other control planes, of the stage before.
  const made = controlPlanes.filter((one) => created.includes(one)).map(({ name }) => name);
  return made.length > 0 ? `this update makes ${made.join(", ")}` : undefined;
}
