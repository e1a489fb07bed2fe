import { heldText, stageText } from "../kubeadm/certificate-authorities";
import type { RotationState } from "../kubeadm/rotation";
import type { AzureState } from "../azure/state";
import { leavingMachines, type PreviousOutputs } from "./machine-changes";
import { leavingControlPlanes } from "./encryption-keys";
import { planRotation } from "./rotation";
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

/** One stage towards the CA that the settings want, unless this update does something else to the control plane. */
export function planCas(args: CasArgs): PlannedCas {
  const { keys: cas, message } = planRotation({
    ...args,
    what: "cas",
    now: args.previous?.cas,
    wanted: args.settings.caGeneration,
    texts: { heldText, stageText },
    whyNot: (previous) => whyNot(args, previous),
  });
  return { cas, message };
}

function whyNot(args: CasArgs, previous: PreviousOutputs): string | undefined {
  const { settings, id, controlPlanes, workers, created, azure } = args;
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
