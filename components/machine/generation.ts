import { keyOf } from "../azure/existing-network";
import { Hardware, plainHardware } from "../azure/hardware";
import { BootstrapState } from "../azure/state";
import { digest } from "../digest";
import type { Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";

/**
 * What an existing machine keeps, whatever this release or somebody else would make a new one with. Of one that is deallocated Azure
 * does not show the disk's size and type (azure-powershell #13213), which a refresh then takes out of the state.
 */
export const ignoredOnExisting: readonly string[] = [
  "osProfile.customData",
  "securityProfile.encryptionAtHost",
  "storageProfile.diskControllerType",
  "storageProfile.imageReference",
  "storageProfile.osDisk.diskSizeGB",
  "storageProfile.osDisk.managedDisk.diskEncryptionSet",
  "storageProfile.osDisk.managedDisk.storageAccountType",
];

/** Azure refuses a change of these on a living VM, and azure-native would try it as an update. */
export const replacedOnChange: readonly string[] = [
  "zones",
  "osProfile.adminUsername",
  "osProfile.computerName",
  "osProfile.customData",
  "osProfile.linuxConfiguration.ssh.publicKeys",
  "securityProfile.encryptionAtHost",
  "securityProfile.securityType",
  "storageProfile.imageReference",
  "storageProfile.osDisk.diskSizeGB",
  "storageProfile.osDisk.managedDisk.diskEncryptionSet",
  "storageProfile.osDisk.managedDisk.storageAccountType",
];

/** A machine's taints as one text, as the kubelet would take them. */
const taintsText = ({ taints }: MachinePlan): string =>
  taints.map(({ key, value, effect }) => `${key}=${value ?? ""}:${effect}`).join(",");

/**
 * What a machine is made with by its pool's options, by their names; an option that is not used is left
 * out. No kubelet may change the taints that its node has registered with, and one that is to take fewer
 * pods ends those that are too many, whatever their budgets say. Azure changes no machine's priority, and
 * with the size of one whose OS disk is its host's it makes that disk anew.
 */
const poolInputsOf = ({
  maxPods,
  spot,
  ephemeralOsDisk,
  size,
}: MachinePlan): Readonly<Record<string, string>> => ({
  ...(maxPods !== undefined && { maxPods: String(maxPods) }),
  ...(spot && { spot: Object.values(spot).join(" at ") }),
  ...(ephemeralOsDisk && { ephemeralOsDisk, size: size.toLowerCase() }),
});

/** What a machine is made with and Azure does not show, or not in a form to compare. */
export const fixedTexts = (plan: MachinePlan): string[] => [
  taintsText(plan),
  ...Object.values(poolInputsOf(plan)),
];

/**
 * Everything of which a change replaces the machine, by the names of the settings.
 *
 * What only a first boot reads is left out: the scripts, the Kubernetes version and the mirror
 * change with a release of this program or on a living cluster, and no machine is replaced for
 * them. One that is made later gets what is current. The image is compared by itself, with the one
 * that Azure says the machine was made of. A setting that came later is left out at its default, so that
 * no machine is replaced for a new release.
 */
export const replacementInputsOf = (
  plan: MachinePlan,
  settings: Settings,
  { architecture }: Pick<Hardware, "architecture"> = plainHardware,
): Readonly<Record<string, string>> => ({
  zone: plan.zone,
  taints: taintsText(plan),
  adminUsername: settings.adminUsername,
  sshPublicKey: digest(settings.sshPublicKey),
  osDiskSku: plan.osDiskSku,
  osDiskSizeGb: String(plan.osDiskSizeGb),
  containerRuntime: settings.containerRuntime,
  ...(settings.encryptionAtHost && { encryptionAtHost: "true" }),
  ...(settings.diskEncryptionSetId !== "" && {
    diskEncryptionSetId: keyOf(settings.diskEncryptionSetId),
  }),
  ...(architecture !== plainHardware.architecture && { architecture }),
  ...poolInputsOf(plan),
});

/** A hash over it; the same in every release of this program. */
export const generationOf = (
  plan: MachinePlan,
  settings: Settings,
  hardware?: Pick<Hardware, "architecture">,
): string => digest([plan.name, Object.values(replacementInputsOf(plan, settings, hardware))]);

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
