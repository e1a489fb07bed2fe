import { Settings } from "../settings/settings";

export const suffixOf = (zone: string | undefined): string =>
  zone === undefined ? "" : `-${zone}`;

export const egressName = (clusterName: string, zone: string | undefined): string =>
  `${clusterName}-egress${suffixOf(zone)}`;

/** Names of the NAT gateways, which are those of their public addresses. */
export const egressNames = (
  settings: Pick<Settings, "clusterName" | "egress" | "zones">,
): string[] => gatewayZones(settings).map((zone) => egressName(settings.clusterName, zone));

/** The zone of each NAT gateway, undefined for one without; none where the network leads out by itself. */
export const gatewayZones = ({ egress, zones }: Pick<Settings, "egress" | "zones">) =>
  ({ zonal: zones, single: [undefined], none: [] })[egress];

export interface NetworkNames {
  readonly virtualNetwork: string;
  readonly securityGroup: string;
  readonly routeTable: string;
  readonly balancerSubnet: string;
}

export const networkNames = (clusterName: string): NetworkNames => ({
  virtualNetwork: `${clusterName}-vnet`,
  securityGroup: `${clusterName}-nsg`,
  routeTable: `${clusterName}-rt`,
  balancerSubnet: "internal-balancers",
});

/** Also of its public address. The cloud provider adopts a balancer that bears the cluster's name. */
export const apiBalancerName = (clusterName: string): string => `${clusterName}-api`;
