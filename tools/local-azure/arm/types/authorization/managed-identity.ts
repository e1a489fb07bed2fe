import { randomUUID } from "node:crypto";

import { badRequest, conflict } from "../../azure-error";
import { account, keyOf } from "../../resources/resource";
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

export type CredentialBody = { issuer: string; subject: string; audiences: string[] };

const mostOfIdentity = 20;

/** Whose tokens Entra takes for those of a managed identity. */
export const federatedIdentityCredential: ResourceType<CredentialBody> = {
  token: "azure-native:managedidentity:FederatedIdentityCredential",
  type: "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials",
  isStateless: true,
  name: /^[A-Za-z0-9][A-Za-z0-9_-]{2,119}$/,
  lock: ({ parent }) => parent,
  // pulumi-azure-native #4343
  locked: (identity) =>
    conflict(
      "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity",
      `Too many Federated Identity Credentials are written concurrently for the managed identity '${identity}'. ` +
        "Concurrent Federated Identity Credentials writes under the same managed identity are not supported.",
    ),

  accept({ id, body }, view) {
    const { issuer, subject, audiences } = body;
    if (!/^https:\/\/[^/?#]+[^?#]*$/.test(issuer)) {
      throw badRequest(`The issuer '${issuer}' of '${id.name}' is not an absolute https URL.`);
    }
    if (subject === "" || audiences.length !== 1) {
      throw badRequest(
        `Federated identity credential '${id.name}' has ${audiences.length} audiences and the subject '${subject}'; one of each is required.`,
      );
    }
    const others = view
      .children(id.parent, federatedIdentityCredential.type)
      .filter((one) => keyOf(one.id) !== id.key);
    if (others.length >= mostOfIdentity) {
      throw badRequest(
        `Too many federated identity credentials: the maximum is ${mostOfIdentity} for a managed identity.`,
      );
    }
    const same = others.find(({ body: other }) => {
      const { issuer: theirs, subject: whose } = other as CredentialBody;
      return theirs === issuer && whose === subject;
    });
    if (same !== undefined) {
      throw conflict(
        "Conflict",
        `Issuer and subject combination already exists for this Managed Identity, in '${same.id.split("/").at(-1)}'.`,
      );
    }
    return { body };
  },
};
