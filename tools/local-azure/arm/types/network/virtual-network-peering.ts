import { refuse, subResourceNotFound } from "../../azure-error";
import { keyOf, parseId } from "../../resources/ids";
import { Body, View } from "../../resources/resource";
import { ResourceType } from "../resource-type";
import { overlap, parseRange } from "./addresses";
import { networkName, Ref } from "./common";

type PeeringBody = {
  remoteVirtualNetwork: Ref;
  allowVirtualNetworkAccess?: boolean;
  allowForwardedTraffic?: boolean;
};

interface Network {
  readonly addressSpace: { readonly addressPrefixes: readonly string[] };
}

const prefixesOf = (network: string, view: View): readonly string[] =>
  (view.find(network)?.body as Network | undefined)?.addressSpace.addressPrefixes ?? [];

/** One side of a peering: nothing passes until the other network has one that leads back. */
export const virtualNetworkPeering: ResourceType<PeeringBody> = {
  token: "azure-native:network:VirtualNetworkPeering",
  type: "Microsoft.Network/virtualNetworks/virtualNetworkPeerings",
  required: ["remoteVirtualNetwork.id"],
  readOnly: [
    "peeringState",
    "peeringSyncLevel",
    "remoteAddressSpace",
    "remoteVirtualNetworkAddressSpace",
  ],
  name: networkName,
  lock: ({ parent }) => parent,
  notFound: subResourceNotFound,

  accept({ id, body }, view) {
    const remote = body.remoteVirtualNetwork.id ?? "";
    if (view.find(remote) === undefined) {
      throw refuse(
        "RemoteVnetNotFound",
        `Remote virtual network ${remote} of peering ${id.id} was not found.`,
      );
    }
    const ranges = (network: string) =>
      prefixesOf(network, view).map((prefix) => parseRange(prefix, network));
    const both = ranges(id.parent).filter((one) =>
      ranges(remote).some((other) => overlap(one, other)),
    );
    if (both.length > 0) {
      throw refuse(
        "VnetAddressSpacesOverlap",
        `Cannot create or update peering ${id.id}. Virtual networks ${id.parent} and ${remote} cannot be peered because their address ` +
          `spaces overlap. Overlapping address prefixes: ${both.map(({ prefix }) => prefix).join(", ")}`,
      );
    }
    return { body: { allowVirtualNetworkAccess: true, allowForwardedTraffic: false, ...body } };
  },

  shown({ id, body }, view) {
    const own = parseId(id)!.parent;
    const remote = body.remoteVirtualNetwork.id ?? "";
    const isAnswered = view
      .children(remote, virtualNetworkPeering.type)
      .some((one) => keyOf((one.body as PeeringBody).remoteVirtualNetwork.id ?? "") === keyOf(own));
    const space = { addressPrefixes: prefixesOf(remote, view) };
    return {
      peeringState: isAnswered ? "Connected" : view.find(remote) ? "Initiated" : "Disconnected",
      peeringSyncLevel: isAnswered ? "FullyInSync" : "RemoteNotInSync",
      remoteAddressSpace: space,
      remoteVirtualNetworkAddressSpace: space,
    };
  },
};

/** As the network itself has them. */
export const peeringsOf = (network: string, view: View): Body[] =>
  view.children(network, virtualNetworkPeering.type).map((one) => ({
    ...{ id: one.id, name: one.id.split("/").at(-1), type: virtualNetworkPeering.type },
    ...one.body,
    ...virtualNetworkPeering.shown?.(one as never, view),
  }));
