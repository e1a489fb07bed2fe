import { ResourceType } from "../resource-type";
import { parseRange, Range } from "./addresses";
import { ChildList, guidOf } from "./common";
import {
  checkApart,
  checkChange,
  checkFits,
  checkSubnetUnused,
  completeSubnet,
  subnet,
  SubnetBody,
  subnetRanges,
} from "./subnet";
import { peeringsOf } from "./virtual-network-peering";

type VirtualNetworkBody = {
  location: string;
  addressSpace: { addressPrefixes: string[] };
  subnets?: (SubnetBody & { name: string })[];
  enableDdosProtection?: boolean;
};

const subnets = new ChildList("subnets", subnet, completeSubnet);

export const virtualNetwork: ResourceType<VirtualNetworkBody> = {
  token: "azure-native:network:VirtualNetwork",
  type: "Microsoft.Network/virtualNetworks",
  required: ["addressSpace.addressPrefixes"],
  forceNew: ["location"],
  maintainIfUnset: ["subnets", "virtualNetworkPeerings"],
  nested: ["subnets[]", "subnets[].delegations[]", "virtualNetworkPeerings[]"],
  name: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}[A-Za-z0-9_]$/,
  lock: ({ id }) => id,

  accept({ id, body, old }, view) {
    const space = body.addressSpace.addressPrefixes.map((prefix) => parseRange(prefix, id.id));
    const wanted = body.subnets ?? [];
    const taken: Range[] = [];
    for (const child of wanted) {
      const childId = subnets.idOf(id.id, child.name);
      const ranges = subnetRanges(child, childId);
      checkFits(child.name, ranges, space, id.name);
      checkApart(child.name, ranges, taken, id.name);
      taken.push(...ranges);
      const before = view.find(childId);
      if (before) checkChange(child, before.body, childId, view);
    }
    for (const child of old ? subnets.dropped(id.id, wanted, view) : []) {
      checkSubnetUnused(child.id, view);
    }
    const { subnets: _, ...own } = body;
    return {
      body: {
        enableDdosProtection: false,
        ...own,
        ...guidOf(old?.body),
        subnets: wanted,
      },
    };
  },

  commit: (resource, ledger, now) => subnets.commit(resource, ledger, now),

  shown: ({ id }, view) => ({
    subnets: subnets.shown(id, view),
    virtualNetworkPeerings: peeringsOf(id, view),
  }),

  mayDelete({ id }, view) {
    for (const child of view.children(id, subnet.type)) checkSubnetUnused(child.id, view);
  },
};
