import type { Settings } from "../settings/settings";
import { MachinePlan } from "../settings/topology";
import type { AzureConnection } from "./resource-manager";
import { groupId } from "./resource-names";
import {
  capability,
  hasAcceleratedNetworking,
  isNvmeOnly,
  isSameSize,
  sizesIn,
  Sku,
} from "./size-offers";
import { AzureState, computeVersion, MachineState } from "./state";

interface Wanted {
  readonly skus: readonly Sku[];
  /** The machines that there are, by their name. */
  readonly existing: ReadonlyMap<string, Pick<MachineState, "size" | "diskController">>;
  /** Those of the machines that are made anew. */
  readonly created: readonly MachinePlan[];
  /** What changes a machine's size, without the value. */
  readonly command: (machine: MachinePlan) => string;
}

/**
 * Which machines Azure would not resize, though it makes new ones of that size: a temporary disk
 * can neither come nor go, nor can the kind of the disk controller change. One that is made anew keeps
 * its interface, which cannot belong to a machine without accelerated networking when it has that.
 */
export function resizeProblems(
  machines: readonly MachinePlan[],
  { skus, existing, created, command }: Wanted,
): string[] {
  const sizes = sizesIn(skus);
  return machines.flatMap((machine) => {
    const { name, size } = machine;
    const { size: before = size, diskController } = existing.get(name) ?? {};
    const [now, next] = [before, size].map((one) => sizes.get(one.toLowerCase()));
    if (now === undefined || next === undefined || now === next) return [];
    const isResized = !created.includes(machine);
    const hasNvme = diskController === undefined ? isNvmeOnly(now) : diskController === "NVMe";
    const fixed: [boolean, string][] = [
      [
        isResized && hasTemporaryDisk(now) !== hasTemporaryDisk(next),
        `has ${hasTemporaryDisk(next) ? "a" : "no"} temporary disk and ${before} has ${hasTemporaryDisk(now) ? "one" : "none"}`,
      ],
      [
        isResized && isNvmeOnly(next) && !hasNvme,
        `has NVMe disk controllers only, and the machine was made with SCSI`,
      ],
      [
        isResized && hasScsiOnly(next) && hasNvme,
        `has SCSI disk controllers only, and the machine was made with NVMe`,
      ],
      [
        hasAcceleratedNetworking(now) && !hasAcceleratedNetworking(next),
        `has no accelerated networking, and the machine's interface was made with it`,
      ],
    ];
    return fixed
      .filter(([holds]) => holds)
      .map(
        ([, difference]) =>
          `${name}: size ${size} ${difference}, which Azure changes on no machine; ` +
          `take another size, or keep this one (${command(machine)} ${before})`,
      );
  });
}

/**
 * Names of those of these machines that have to be deallocated for their new size: Azure keeps a
 * machine that has hardware on hardware of that kind, and says which sizes that has. Where it does
 * not say, a machine is deallocated: the size may be refused else, after the drain.
 *
 * @param resized machines that exist and get another size
 */
export async function getDeallocations(
  resized: readonly MachinePlan[],
  machines: AzureState["machines"],
  settings: Pick<Settings, "clusterName" | "resourceGroup">,
  { arm, subscriptionId }: AzureConnection,
): Promise<Set<string>> {
  const group = groupId(settings, subscriptionId);
  const isBound = ({ name, size }: MachinePlan): Promise<boolean> =>
    arm
      .list<{ name: string }>(
        `${group}/providers/Microsoft.Compute/virtualMachines/${name}/vmSizes`,
        computeVersion,
        { name: "" },
      )
      .then(
        (sizes) => !sizes.some((one) => isSameSize(one.name, size)),
        () => true,
      );
  const asked = resized.filter(({ name }) => machines.get(name)?.power !== "deallocated");
  const bound = await Promise.all(asked.map(isBound));
  return new Set(asked.filter((_, index) => bound[index]).map(({ name }) => name));
}

/** False where Azure does not say, as of sizes with storage of their own. */
const hasTemporaryDisk = (sku: Sku): boolean =>
  Number(capability(sku, "MaxResourceVolumeMB") ?? 0) > 0;

/** Azure's list says nothing of sizes from before there was NVMe. */
const hasScsiOnly = (sku: Sku): boolean =>
  (capability(sku, "DiskControllerTypes") ?? "scsi") === "scsi";
