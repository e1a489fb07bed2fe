import type { Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";

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
