import type * as pulumi from "@pulumi/pulumi";

import { azureCloudAt } from "../azure/clouds";

/** Where a pod finds the token by which it logs in to Azure. */
export const tokenVolume = {
  name: "azure-identity-token",
  mountPath: "/var/run/secrets/azure/tokens",
  file: "azure-identity-token",
  /** Seconds until the kubelet writes another one, an hour as upstream's webhook has it. */
  expirationSeconds: 3600,
} as const;

/** As whom this program's own pods log in by tokens of their service accounts. */
export interface ServiceAccountLogin {
  readonly tenantId: string;
  readonly clientId: pulumi.Input<string>;
  readonly resourceManagerEndpoint: string;
}

/**
 * What a pod has to log in with as its service account, which Azure's libraries prefer to the identity that
 * azure.json names. It stands in the pod itself and not in a policy, which API servers take up some moments later.
 */
export function loginParts(login: ServiceAccountLogin | undefined) {
  if (login === undefined) return { env: [], volumes: [], volumeMounts: [] };
  const { name, mountPath, file, expirationSeconds } = tokenVolume;
  const { tokenAudience } = azureCloudAt(login.resourceManagerEndpoint);
  const token = { path: file, audience: tokenAudience, expirationSeconds };
  return {
    env: [
      { name: "AZURE_CLIENT_ID", value: login.clientId },
      { name: "AZURE_TENANT_ID", value: login.tenantId },
      { name: "AZURE_FEDERATED_TOKEN_FILE", value: `${mountPath}/${file}` },
    ],
    volumes: [{ name, projected: { sources: [{ serviceAccountToken: token }] } }],
    volumeMounts: [{ name, mountPath, readOnly: true }],
  };
}
