import { idIn, subscriptionId } from "../sample";
import type { Cases } from "./case";

/** What others have in the group that the cluster is in. */
const theirs = {
  identityId: idIn("mine", "Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes"),
  nodeSubnets: [idIn("mine", "Microsoft.Network/virtualNetworks/spoke/subnets/nodes")],
  etcdBackups: {
    container: idIn(
      "mine",
      "Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd",
    ),
  },
};

export const resourceGroupCases: Cases = {
  refused: [
    [
      "a resource group by its id",
      {
        resourceGroup: `/subscriptions/${subscriptionId}/resourceGroups/platform`,
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

const many = Object.fromEntries(Array.from({ length: 31 }, (_, n) => [`tag-${n}`, "x"]));

export const tagCases: Cases = {
  refused: [
    ["tags that are no map", { tags: "cost=1" }, 'tags is "cost=1", expected values by name'],
    ["a tag that is a list", { tags: { cost: ["1"] } }, "tags.cost is"],
    ["a tag without a name", { tags: { "": "x" } }, "a name of 1 to 512 characters"],
    [
      "a tag's name that is too long for the storage account of an issuer",
      { tags: { ["x".repeat(129)]: "y" }, machineIdentity: false },
      "a name of 1 to 128 characters",
    ],
    ["a tag's name with a slash", { tags: { "firm's/center": "1" } }, "without < > % & \\ ? /"],
    [
      "a name that Azure keeps",
      { tags: { AzureOwner: "me" } },
      "none of microsoft, azure and windows",
    ],
    ["a name of this program", { tags: { "Zoned-Drained": "x" } }, "does not begin with zoned-"],
    ["a name in two spellings", { tags: { owner: "a", Owner: "b" } }, "each name once"],
    ["a tag too long", { tags: { owner: "x".repeat(257) } }, "is 257 characters long"],
    ["a comma in a tag", { tags: { owner: "a,b" } }, "a value without a comma"],
    ["an equals sign in a tag's name", { tags: { "a=b": "c" } }, "a name without a comma or ="],
    ["more tags than Azure leaves room for", { tags: many }, "has 31 tags, expected at most 30"],
  ],
  accepted: [
    ["tags", { tags: { costCenter: "4711", "the owner": "team=platform", empty: "" } }],
    ["a tag's long name, where there is no storage account", { tags: { ["x".repeat(512)]: "y" } }],
    ["a number as a tag", { tags: { costCenter: 4711 } }],
  ],
};
