import type { LocalDisk, OsDiskSku } from "../settings";

/** What OS disks can be made of, the default first. */
export const osDiskSkus: readonly OsDiskSku[] = ["Premium_LRS", "StandardSSD_LRS"];

/** Where an OS disk can lie on its host. */
export const localDisks: readonly LocalDisk[] = ["CacheDisk", "ResourceDisk", "NvmeDisk"];

/** How large they can be, in GiB. */
export const osDiskSizes = {
  least: 30,
  most: 4095,
  why: "from what the image needs to what Azure boots from",
} as const;
