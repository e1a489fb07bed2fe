import { refuse } from "../../azure-error";
import { keyOf } from "../../ids";
import { Body, Ledger, pick, Resource, View } from "../../resource";
import { Accepted, Put, ResourceType } from "../../resource-type";
import { parseRange, Range, within } from "./addresses";
import { guidOf } from "./common";
import {
  checkSubnetUnused,
  completeSubnet,
  subnet,
  SubnetBody,
  subnetRanges,
  subnetType,
} from "./subnet";

type VirtualNetworkBody = {
  location: string;
  addressSpace: { addressPrefixes: string[] };
  subnets?: (SubnetBody & { name: string })[];
  enableDdosProtection?: boolean;
};

const childId = (id: string, name: string) => `${id}/subnets/${name}`;

export const virtualNetwork: ResourceType<VirtualNetworkBody> = {
  token: "azure-native:network:VirtualNetwork",
  type: "Microsoft.Network/virtualNetworks",
  apiVersion: "2024-05-01",
  path: "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.Network/virtualNetworks/{virtualNetworkName}",
  autoName: "random",
  inputs: [
    "addressSpace",
    "bgpCommunities",
    "ddosProtectionPlan",
    "dhcpOptions",
    "enableDdosProtection",
    "enableVmProtection",
    "encryption",
    "extendedLocation",
    "flowTimeoutInMinutes",
    "ipAllocations",
    "location",
    "privateEndpointVNetPolicies",
    "subnets",
    "tags",
    "virtualNetworkPeerings",
  ],
  required: ["addressSpace.addressPrefixes"],
  forceNew: ["location"],
  maintainIfUnset: ["subnets", "virtualNetworkPeerings"],
  nested: ["subnets[]", "subnets[].delegations[]", "virtualNetworkPeerings[]"],
  name: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}[A-Za-z0-9_]$/,
  lock: ({ id }) => id,

  accept({ id, body, old }: Put<VirtualNetworkBody>, view: View): Accepted<VirtualNetworkBody> {
    const space = body.addressSpace.addressPrefixes.map((prefix) => parseRange(prefix, id.id));
    const wanted = body.subnets ?? [];
    for (const child of wanted)
      checkFits(child.name, subnetRanges(child, childId(id.id, child.name)), space, id.name);
    for (const child of old ? view.children(id.id) : []) {
      const isKept = wanted.some(({ name }) => keyOf(childId(id.id, name)) === keyOf(child.id));
      if (!isKept) checkSubnetUnused(child.id, view);
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

  commit(resource: Resource<VirtualNetworkBody>, ledger: Ledger, now: Date): void {
    const wanted = resource.body.subnets ?? [];
    for (const child of ledger.children(resource.id)) {
      const isKept = wanted.some(
        ({ name }) => keyOf(childId(resource.id, name)) === keyOf(child.id),
      );
      if (!isKept) ledger.remove(child.id);
    }
    for (const { name, ...sent } of wanted) {
      const body = pick(sent, subnet.inputs) as SubnetBody;
      const id = childId(resource.id, name);
      const old = ledger.find(id);
      ledger.put({
        id: old?.id ?? id,
        type: subnetType,
        body: { ...completeSubnet(body), provisioningState: "Succeeded" },
        hidden: {},
        changed: now.toISOString(),
      });
    }
    delete resource.body.subnets;
  },

  shown: ({ id }, view: View): Body => ({
    subnets: view.children(id).map((child) => ({
      ...child.body,
      id: child.id,
      name: child.id.split("/").at(-1),
      type: subnetType,
    })),
    virtualNetworkPeerings: [],
  }),

  mayDelete({ id }, view: View): void {
    for (const child of view.children(id)) checkSubnetUnused(child.id, view);
  },
};

function checkFits(
  name: string,
  ranges: readonly Range[],
  space: readonly Range[],
  network: string,
): void {
  if (ranges.every((range) => space.some((outer) => within(range, outer)))) return;
  throw refuse(
    "NetcfgSubnetRangeOutsideVnet",
    `Subnet '${name}' is not valid because its IP address range is outside the IP address range of virtual network '${network}'.`,
  );
}
