import {
  AzureError,
  conflict,
  methodNotAllowed,
  propertyChangeNotAllowed,
  refuse,
} from "../azure-error";
import { parseId, Resource, View } from "../resources/resource";
import { ResourceType } from "./resource-type";

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

const type = "Microsoft.Storage/storageAccounts/blobServices";

/** The part of an account that its containers are in. It comes and goes with the account. */
const blobServiceOf = (account: string, now: Date): Resource => ({
  id: `${account}/blobServices/default`,
  type,
  body: {
    cors: { corsRules: [] },
    deleteRetentionPolicy: { enabled: false },
    provisioningState: "Succeeded",
  },
  hidden: {},
  changed: now.toISOString(),
});

export const blobService: ResourceType = {
  token: "azure-native:storage:BlobServiceProperties",
  type,
  isStateless: true,
  name: /^default$/,
  accept: ({ body }) => ({ body: { cors: { corsRules: [] }, ...body } }),
  mayDelete() {
    throw methodNotAllowed("DELETE", type);
  },
};

export type StorageAccountBody = {
  location: string;
  kind: string;
  sku: { name: string; tier?: string };
  accessTier?: string;
  allowBlobPublicAccess?: boolean;
  allowSharedKeyAccess?: boolean;
  isHnsEnabled?: boolean;
  networkRuleSet?: { bypass?: string; defaultAction?: string };
  publicNetworkAccess?: string;
  enableHttpsTrafficOnly?: boolean;
  creationTime?: string;
};

export const storageAccountType = "Microsoft.Storage/storageAccounts";

/** Below which each account has a name of its own for its blobs. */
export const blobDomain = "blob.core.windows.net";

export const storageAccount: ResourceType<StorageAccountBody> = {
  token: "azure-native:storage:StorageAccount",
  type: storageAccountType,
  required: ["sku.name"],
  forceNew: ["isHnsEnabled", "enableNfsV3", "location"],
  armNames: {
    enableHttpsTrafficOnly: "supportsHttpsTrafficOnly",
    enableNfsV3: "isNfsV3Enabled",
    networkRuleSet: "networkAcls",
  },
  patches: "inputs",

  accept({ id, body, old, now }, view) {
    if (!/^[a-z0-9]{3,24}$/.test(id.name)) {
      throw refuse(
        "AccountNameInvalid",
        `${id.name} is not a valid storage account name. Storage account name must be between 3 and 24 characters in length and use numbers and lower-case letters only.`,
      );
    }
    if (old === undefined && hasAccount(id.name, view)) {
      throw conflict(
        "StorageAccountAlreadyTaken",
        `The storage account named ${id.name} is already taken.`,
      );
    }
    const isNew = old === undefined;
    if (!isNew && old.body.isHnsEnabled !== (body.isHnsEnabled ?? false)) {
      throw propertyChangeNotAllowed("isHnsEnabled");
    }
    if (!isNew && tierOf(old.body) !== tierOf(body)) throw propertyChangeNotAllowed("sku.name");
    const filled = {
      accessTier: "Hot",
      allowBlobPublicAccess: false,
      isHnsEnabled: false,
      minimumTlsVersion: "TLS1_0",
      networkRuleSet: { bypass: "AzureServices", defaultAction: "Allow" },
      enableHttpsTrafficOnly: true,
      ...body,
      sku: { name: body.sku.name, tier: tierOf(body) },
      creationTime: old?.body.creationTime ?? now.toISOString(),
      primaryLocation: body.location,
      statusOfPrimary: "available",
      primaryEndpoints: { blob: `https://${id.name}.${blobDomain}/` },
    };
    return { body: filled };
  },

  commit(account, ledger, now) {
    const service = blobServiceOf(account.id, now);
    if (ledger.find(service.id) === undefined) ledger.put(service);
  },
};

/** Whether anybody has an account of this name. */
export const hasAccount = (name: string, view: View): boolean =>
  view.ofType(storageAccountType).some(({ id }) => id.endsWith(`/${name}`));

const tierOf = ({ sku }: StorageAccountBody): string => sku.name.split("_")[0]!;
