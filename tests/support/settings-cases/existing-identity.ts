import type { Cases } from "./case";

const identityIn = (group: string): string =>
  `/subscriptions/3f1f6c52-8f0e-4b0c-9a52-4a3f6b0f7e11/resourceGroups/${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes`;

export const existingIdentityCases: Cases = {
  refused: [
    [
      "an identity by its client id",
      { identityId: "5f0b7d9e-8c1a-4a53-9d0e-2f6c3b1a7e88" },
      "Azure's id of a user-assigned identity",
    ],
    [
      "an identity that goes with the cluster",
      { clusterName: "mine", identityId: identityIn("Mine") },
      "in another resource group than mine",
    ],
  ],
  accepted: [
    ["an identity of others", { identityId: identityIn("identities") }],
    [
      "one whose snapshots go to a container",
      {
        identityId: identityIn("identities"),
        etcdBackups: {
          container:
            "/subscriptions/3f1f6c52-8f0e-4b0c-9a52-4a3f6b0f7e11/resourceGroups/backups/providers/Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd",
        },
      },
    ],
  ],
};
