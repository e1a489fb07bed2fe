import { BootstrapState } from "../azure/state";

export interface MachineRecord {
  /** Hash of what a change of would replace the machine. */
  readonly generation: string;
  /** What that hash is over, by the names of the settings. */
  readonly replacementInputs?: Readonly<Record<string, string>>;
  /** When an update ordered the machine. */
  readonly createdAt: string;
  /** When an update ordered the run of its bootstrap step. */
  readonly bootstrapRequestedAt: string;
  readonly kubernetesVersion: string;
  /** Hash over what that step configures kubeadm, kubelet and static pods with. */
  readonly configuration: string;
}
/**
 * Which run of the bootstrap step this is, named by the time when it was ordered. The same as long
 * as Azure shows the step as succeeded; else another one, since Azure repeats no equal request, and
 * since a run whose update was killed was not waited for.
 *
 * @param remembered the run by the stack's outputs, for a step whose tag was removed
 */
export const bootstrapRequestTime = (
  bootstrap: BootstrapState | undefined,
  remembered: string | undefined,
  now: string,
): string =>
  (bootstrap?.state === "Succeeded" ? (bootstrap.requestedAt ?? remembered) : undefined) ?? now;
