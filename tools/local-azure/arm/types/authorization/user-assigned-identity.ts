import { randomUUID } from "node:crypto";

import { account } from "../../resources/ids";
import { ResourceType } from "../resource-type";

type IdentityBody = {
  location: string;
  principalId?: string;
  clientId?: string;
  tenantId?: string;
};

export const userAssignedIdentity: ResourceType<IdentityBody> = {
  token: "azure-native:managedidentity:UserAssignedIdentity",
  type: "Microsoft.ManagedIdentity/userAssignedIdentities",
  isStateless: true,
  forceNew: ["location"],
  name: /^[A-Za-z0-9][A-Za-z0-9_-]{2,127}$/,

  accept: ({ body, old }) => ({
    body: {
      ...body,
      tenantId: account.tenantId,
      principalId: old?.body.principalId ?? randomUUID(),
      clientId: old?.body.clientId ?? randomUUID(),
    },
  }),
};
