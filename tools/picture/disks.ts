import { type AzureResources, referred, sameId, type VirtualMachine } from "./azure";
import type { PersistentVolume } from "./cluster";

export interface Disk {
  /** The claim of its PersistentVolume, where it has one. */
  readonly label: string;
  /** Its name in Azure. */
  readonly name: string;
  /** Size and SKU. */
  readonly kind: string;
}

const kindOf = (size: number | undefined, sku: string | undefined): string =>
  [size === undefined ? "" : `${size} GiB`, sku ?? ""].filter((part) => part !== "").join(" ");

function labelOf(id: string | undefined, volumes: readonly PersistentVolume[]): string | undefined {
  const volume = volumes.find(({ spec }) => sameId(spec.csi?.volumeHandle, id));
  if (volume === undefined) return undefined;
  const { namespace, name } = volume.spec.claimRef ?? {};
  const phase = volume.status?.phase ?? "Bound";
  return `${name === undefined ? volume.metadata.name : `${namespace}/${name}`}${phase === "Bound" ? "" : ` (${phase})`}`;
}

/** Disks of a machine: its own first, then the volumes that are attached to it. */
export function attachedTo(
  { osDisk, dataDisks }: VirtualMachine,
  { disks }: AzureResources,
  volumes: readonly PersistentVolume[],
): Disk[] {
  const drawn = (
    { name, diskSizeGB, managedDisk }: (typeof dataDisks)[number],
    label: string,
  ): Disk => {
    const disk = referred(disks, managedDisk);
    const size = disk?.properties.diskSizeGB ?? diskSizeGB;
    const sku = disk?.sku?.name ?? managedDisk?.storageAccountType;
    return { name, label, kind: kindOf(size, sku) };
  };
  return [
    ...(osDisk === undefined ? [] : [drawn(osDisk, "OS disk")]),
    ...dataDisks.map((one) => drawn(one, labelOf(one.managedDisk?.id, volumes) ?? one.name)),
  ];
}

/** Disks that are attached to no machine; the zone is empty where a disk has none, or all. */
export const looseDisks = (
  { disks }: AzureResources,
  volumes: readonly PersistentVolume[],
): (Disk & { readonly zone: string })[] =>
  disks
    .filter(({ managedBy }) => !managedBy)
    .map(({ id, name, zones = [], sku, properties }) => ({
      zone: zones[0] ?? "",
      ...{ name, label: labelOf(id, volumes) ?? name },
      kind: kindOf(properties.diskSizeGB, sku?.name),
    }));
