import { refuse } from "../../azure-error";
import { withoutUndefined } from "../../resources/resource";
import { ResourceType } from "../resource-type";
import { checkZonesUnchanged } from "../../subscription/regions";
import {
  guidOf,
  networkName,
  parseRange,
  Ref,
  referencesTo,
  referrersOfType,
  SubResource,
  withIds,
} from "./common";
import { checkPublicIpFree, PublicIpBody } from "./public-ip-address";

type NatGatewayBody = {
  location: string;
  sku?: { name?: string };
  zones?: string[];
  idleTimeoutInMinutes?: number;
  publicIpAddresses?: Ref[];
};

/** By which the machines of a subnet reach the internet. */
export const natGateway: ResourceType<NatGatewayBody> = {
  token: "azure-native:network:NatGateway",
  type: "Microsoft.Network/natGateways",
  zones: { most: 1 },
  name: networkName,

  references: ({ publicIpAddresses }, id) => referencesTo(id, publicIpAddresses),

  accept({ id, body, old }, view) {
    if (body.sku?.name !== "Standard") {
      throw refuse(
        "InvalidRequestFormat",
        `NAT Gateway ${id.id} has sku ${JSON.stringify(body.sku?.name)}; the only one at this API version is Standard.`,
      );
    }
    const minutes = body.idleTimeoutInMinutes ?? 4;
    if (minutes < 4 || minutes > 120) {
      throw refuse(
        "InvalidIdleTimeout",
        `NAT Gateway ${id.id} has an idle timeout of ${minutes} minutes. Allowed range 4-120.`,
      );
    }
    if (old) checkZonesUnchanged(id.id, old.body.zones ?? [], body.zones ?? []);
    const [zone] = body.zones ?? [];
    for (const { id: publicIp = "" } of body.publicIpAddresses ?? []) {
      checkPublicIpFree(publicIp, id.id, view);
      const zones = (view.find(publicIp)?.body as PublicIpBody | undefined)?.zones ?? [];
      if (zone !== undefined && !zones.includes(zone)) {
        throw refuse(
          "PublicIPOrPrefixAndStandardSkuNatGatewayZoneDoNotMatch",
          `NAT Gateway ${id.id} has zone ${zone} and public IP ${publicIp} has ${zones.length > 0 ? `zones ${zones.join(", ")}` : "no zone"}. ` +
            "A Standard NAT Gateway with a zone takes public IPs of that zone.",
        );
      }
    }
    return { body: { idleTimeoutInMinutes: minutes, ...body, ...guidOf(old?.body) } };
  },

  shown: ({ id }, view) =>
    withoutUndefined({ subnets: referrersOfType(view, id, "Microsoft.Network/virtualNetworks") }),

  inUse: (id, subnets) =>
    refuse(
      "CannotDeleteNatGatewayAssociatedToSubnet",
      `NAT Gateway ${id} is still configured on ${subnets.length} subnets. ` +
        "Remove NAT Gateway from all referenced subnets and then delete NAT Gateway.",
    ),
};

type RouteTableBody = {
  location: string;
  routes?: (SubResource & { addressPrefix: string })[];
  disableBgpRoutePropagation?: boolean;
};

/** By which a subnet sends what is for these addresses elsewhere. */
export const routeTable: ResourceType<RouteTableBody> = {
  token: "azure-native:network:RouteTable",
  type: "Microsoft.Network/routeTables",
  maintainIfUnset: ["routes"],
  subResources: ["routes"],
  readOnly: ["routes[].id", "routes[].etag", "routes[].provisioningState"],
  name: networkName,

  accept({ id, body, old }) {
    for (const { addressPrefix, name } of body.routes ?? []) {
      if (/^[A-Za-z]/.test(addressPrefix)) continue;
      parseRange(addressPrefix, `${id.id}/routes/${name}`);
    }
    return {
      body: {
        disableBgpRoutePropagation: false,
        ...body,
        routes: withIds(id.id, "routes", body.routes),
        ...guidOf(old?.body),
      },
    };
  },

  shown: ({ id }, view) =>
    withoutUndefined({ subnets: referrersOfType(view, id, "Microsoft.Network/virtualNetworks") }),

  inUse: (id) =>
    refuse(
      "InUseRouteTableCannotBeDeleted",
      `Route table ${id.split("/").at(-1)} is in use and cannot be deleted.`,
    ),
};
