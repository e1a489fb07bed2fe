import type { Cases } from "./case";

const subnet = (name: string, network = "spoke", group = "network"): string =>
  `/subscriptions/3f1f6c52-8f0e-4b0c-9a52-4a3f6b0f7e11/resourceGroups/${group}/providers/Microsoft.Network/virtualNetworks/${network}/subnets/${name}`;

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
