import { refuse } from "../../azure-error";
import { withoutUndefined } from "../../resources/resource";
import { ResourceType } from "../resource-type";
import { guidOf, networkName, parseRange, referrersOfType, SubResource, withIds } from "./common";

type RouteTableBody = {
  location: string;
  routes?: (SubResource & { addressPrefix: string })[];
  disableBgpRoutePropagation?: boolean;
};

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
