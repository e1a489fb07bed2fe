import { methodNotAllowed } from "../../azure-error";
import { Resource } from "../../resources/resource";
import { ResourceType } from "../resource-type";

const type = "Microsoft.Storage/storageAccounts/blobServices";

/** The part of an account that its containers are in. It comes and goes with the account. */
export const blobServiceOf = (account: string, now: Date): Resource => ({
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
