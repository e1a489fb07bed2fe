import { AzureError, conflict } from "../../azure-error";
import { parseId } from "../../resources/ids";
import { ResourceType } from "../resource-type";
import { StorageAccountBody } from "../storage";

export type BlobContainerBody = {
  publicAccess?: string;
  metadata?: Record<string, string>;
  lastModifiedTime?: string;
};

export const blobContainerType = "Microsoft.Storage/storageAccounts/blobServices/containers";

export const blobContainer: ResourceType<BlobContainerBody> = {
  token: "azure-native:storage:BlobContainer",
  type: blobContainerType,
  isStateless: true,
  name: /^(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*$/,

  accept({ id, body, now }, view) {
    const publicAccess = body.publicAccess ?? "None";
    const account = view.find(parseId(id.parent)!.parent)!.body as StorageAccountBody;
    if (publicAccess !== "None" && !account.allowBlobPublicAccess) {
      throw conflict(
        "PublicAccessNotPermitted",
        "Public access is not permitted on this storage account.",
      );
    }
    const filled = {
      defaultEncryptionScope: "$account-encryption-key",
      denyEncryptionScopeOverride: false,
      hasImmutabilityPolicy: false,
      hasLegalHold: false,
      leaseState: "Available",
      leaseStatus: "Unlocked",
      ...body,
      publicAccess,
      lastModifiedTime: now.toISOString(),
    };
    return { body: filled };
  },

  notFound: () =>
    new AzureError(404, "ContainerNotFound", "The specified container does not exist."),
};
