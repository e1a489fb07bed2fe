import { idIn } from "../sample";
import type { Cases } from "../stack";

const setIn = (group: string, name = "kubernetes"): string =>
  idIn(group, `Microsoft.Compute/diskEncryptionSets/${name}`);

export const diskEncryptionSetCases: Cases = {
  refused: [
    [
      "a set by its name",
      { diskEncryptionSetId: "kubernetes" },
      "Azure's id of a disk encryption set",
    ],
    [
      "a set whose name Azure would not take",
      { diskEncryptionSetId: setIn("keys", "my.set") },
      "Azure's id of a disk encryption set",
    ],
    [
      "a set that goes with the cluster",
      { clusterName: "mine", diskEncryptionSetId: setIn("Mine") },
      "in another resource group than mine",
    ],
    ["a text for a switch", { encryptionAtHost: "always" }, "encryptionAtHost"],
  ],
  accepted: [
    ["a set of others", { diskEncryptionSetId: setIn("keys") }],
    [
      "a set in the group of others that the cluster is in",
      { resourceGroup: "platform", diskEncryptionSetId: setIn("platform") },
    ],
    ["hosts that encrypt, with Azure's keys", { encryptionAtHost: true }],
  ],
};

const identityIn = (group: string): string =>
  idIn(group, "Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes");

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
          container: idIn(
            "backups",
            "Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd",
          ),
        },
      },
    ],
  ],
};

const imageIn = (group: string, version = "2026.1127.930"): string =>
  idIn(group, `Microsoft.Compute/galleries/zoned/images/node/versions/${version}`);

export const imageCases: Cases = {
  refused: [
    ["an image by its name", { image: "node" }, "Azure's id of one version of a gallery image"],
    ["the latest one, which moves", { image: imageIn("images", "latest") }, "latest would differ"],
    [
      "an image that goes with the cluster",
      { clusterName: "mine", image: imageIn("Mine") },
      "in another resource group than mine",
    ],
  ],
  accepted: [
    ["an image of a gallery", { image: imageIn("images") }],
    [
      "an image, and of which Ubuntu it is made",
      { image: imageIn("images"), imageVersion: "24.04.202501010" },
    ],
  ],
};

const subnet = (name: string, network = "spoke", group = "network"): string =>
  idIn(group, `Microsoft.Network/virtualNetworks/${network}/subnets/${name}`);

export const nodeSubnetCases: Cases = {
  refused: [
    ["a subnet by its name", { nodeSubnets: ["nodes"] }, "Azure's id of a subnet"],
    [
      "a subnet that goes with the cluster",
      { clusterName: "mine", nodeSubnets: [subnet("nodes", "spoke", "Mine")] },
      "in another resource group than mine",
    ],
    [
      "more subnets than zones",
      { zones: ["1"], nodeSubnets: [subnet("one"), subnet("two")] },
      "one subnet for all zones, or one for each of the 1 in zones",
    ],
    [
      "subnets of two networks",
      { zones: ["1", "2"], nodeSubnets: [subnet("one"), subnet("two", "other")] },
      "a subnet of the virtual network of the first one",
    ],
    [
      "pods in the range of the Services, beside a subnet of others",
      { nodeSubnets: [subnet("nodes")], serviceCidr: "10.244.0.0/16" },
      "a range apart from podCidr",
    ],
  ],
  accepted: [
    ["one subnet for all zones", { nodeSubnets: [subnet("nodes")] }],
    ["egress left to their network", { nodeSubnets: [subnet("nodes")], egress: "none" }],
    ["a private API there", { nodeSubnets: [subnet("nodes")], apiAccess: "private" }],
    ["a small networkCidr, unused", { nodeSubnets: [subnet("nodes")], networkCidr: "10.9.0.0/25" }],
    ["no networkCidr", { nodeSubnets: [subnet("nodes")], networkCidr: "" }],
    ["one for each zone", { nodeSubnets: ["a", "b", "c"].map((name) => subnet(name)) }],
    [
      "pods in the range of the network that is not made then",
      { nodeSubnets: [subnet("nodes")], podCidr: "172.16.0.0/16" },
    ],
    [
      "more machines than that would have room for",
      { nodeSubnets: [subnet("nodes")], workerPools: [{ name: "workers", count: 200 }] },
    ],
  ],
};
