import type { Cases } from "./case";

const inGroup = "/subscriptions/3f1f6c52-8f0e-4b0c-9a52-4a3f6b0f7e11/resourceGroups/mine/providers";

/** What others have in the group that the cluster is in. */
const theirs = {
  identityId: `${inGroup}/Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes`,
  nodeSubnets: [`${inGroup}/Microsoft.Network/virtualNetworks/spoke/subnets/nodes`],
  etcdBackups: {
    container: `${inGroup}/Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd`,
  },
};

export const resourceGroupCases: Cases = {
  refused: [
    [
      "a resource group by its id",
      {
        resourceGroup:
          "/subscriptions/3f1f6c52-8f0e-4b0c-9a52-4a3f6b0f7e11/resourceGroups/platform",
      },
      "not its id (pulumi config set resourceGroup platform)",
    ],
    [
      "a resource group whose name ends with a full stop",
      { resourceGroup: "platform." },
      "the name of a resource group",
    ],
    ["a resource group whose name is too long", { resourceGroup: "a".repeat(91) }, "the name of"],
  ],
  accepted: [
    ["a resource group of others", { resourceGroup: "RG-Platform_(prod).1" }],
    ["what others have in it, too", { clusterName: "mine", resourceGroup: "mine", ...theirs }],
  ],
};
