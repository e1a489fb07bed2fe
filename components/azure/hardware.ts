import type { Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";
import {
  Architecture,
  architectureOf,
  hasAcceleratedNetworking,
  isNvmeOnly,
  sizesIn,
  Sku,
} from "./size-offers";

/** What machines are made differently for, by their size. */
export interface Hardware {
  readonly architecture: Architecture;
  readonly hasAcceleratedNetworking: boolean;
  /** Whether disks are attached by NVMe and by nothing else. */
  readonly isNvmeOnly: boolean;
}

/** Of sizes that Azure says nothing of, which it is not asked to make machines of. */
export const plainHardware: Hardware = {
  architecture: "x64",
  hasAcceleratedNetworking: false,
  isNvmeOnly: false,
};

/**
 * The hardware of these machines, by their names.
 *
 * @param before what the last update has made them with: a machine stays while Azure no longer lists its size
 */
export function hardwareOf(
  machines: readonly MachinePlan[],
  { skus }: { readonly skus: readonly Sku[] },
  before: Readonly<
    Record<string, { readonly replacementInputs?: Readonly<Record<string, string>> }>
  > = {},
): Map<string, Hardware> {
  const sizes = sizesIn(skus);
  return new Map(
    machines.map(({ name, size }) => {
      const sku = sizes.get(size.toLowerCase());
      if (sku !== undefined) return [name, hardwareOfSku(sku)];
      const isArm = before[name]?.replacementInputs?.["architecture"] === "arm64";
      return [name, isArm ? { ...plainHardware, architecture: "arm64" } : plainHardware];
    }),
  );
}

const hardwareOfSku = (sku: Sku): Hardware => ({
  architecture: architectureOf(sku),
  hasAcceleratedNetworking: hasAcceleratedNetworking(sku),
  isNvmeOnly: isNvmeOnly(sku),
});

/** Azure's own word for a price that is never too high, which it shows where none is given. */
const anyPrice = -1;

/** The properties by which a machine is one of spare capacity; none of a regular one. */
export const spotProperties = ({ spot }: Pick<MachinePlan, "spot">) =>
  spot && {
    priority: "Spot",
    evictionPolicy: spot.evictionPolicy,
    billingProfile: { maxPrice: spot.maxPrice ?? anyPrice },
  };

/** Azure's name of the quota that machines of spare capacity count against, whatever their size. */
export const spotCores = "lowPriorityCores";

/** The OS disk of a new machine. One that its host has is a cache of what is written, which only reads are. */
export const osDiskProperties = (
  { osDiskSku, osDiskSizeGb, ephemeralOsDisk }: MachinePlan,
  { diskEncryptionSetId }: Pick<Settings, "diskEncryptionSetId">,
) => ({
  createOption: "FromImage",
  caching: ephemeralOsDisk === undefined ? ("ReadWrite" as const) : ("ReadOnly" as const),
  deleteOption: "Delete",
  diskSizeGB: osDiskSizeGb,
  ...(ephemeralOsDisk !== undefined && {
    diffDiskSettings: { option: "Local", placement: ephemeralOsDisk },
  }),
  managedDisk: {
    storageAccountType: osDiskSku,
    ...(diskEncryptionSetId !== "" && { diskEncryptionSet: { id: diskEncryptionSetId } }),
  },
});
