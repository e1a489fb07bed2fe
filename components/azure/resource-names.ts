import { clusterHash } from "../digest";
import { hasOwnIdentity, hasOwnKubeletIdentity } from "../settings/logins";
import { quoted } from "../settings/problem";
import { azureName } from "../settings/rules/identities";
import { Settings } from "../settings/settings";

type GroupSettings = Pick<Settings, "clusterName" | "resourceGroup">;

/** Name of the resource group that the cluster is in, whoever has made it. */
export const groupName = ({ clusterName, resourceGroup }: GroupSettings): string =>
  resourceGroup || clusterName;

/** The same in a command: Azure takes parentheses in it. */
export const groupWord = (settings: GroupSettings): string => quoted(groupName(settings));

/** Its id. */
export const groupId = (settings: GroupSettings, subscriptionId: string): string =>
  `/subscriptions/${subscriptionId}/resourceGroups/${groupName(settings)}`;

export const suffixOf = (zone: string | undefined): string =>
  zone === undefined ? "" : `-${zone}`;

export const egressName = (clusterName: string, zone: string | undefined): string =>
  `${clusterName}-egress${suffixOf(zone)}`;

/** Names of the NAT gateways, which are those of their public addresses. */
export const egressNames = (
  settings: Pick<Settings, "clusterName" | "egress" | "nodeSubnets" | "zones">,
): string[] => gatewayZones(settings).map((zone) => egressName(settings.clusterName, zone));

/**
 * The zone of each NAT gateway, undefined for one without; none where the network leads out by itself, and
 * none in subnets of others, which have those of others.
 */
export const gatewayZones = ({
  egress,
  nodeSubnets,
  zones,
}: Pick<Settings, "egress" | "nodeSubnets" | "zones">) =>
  nodeSubnets.length > 0 ? [] : { zonal: zones, single: [undefined], none: [] }[egress];

/** A resource in a group. */
export interface Place {
  readonly name: string;
  readonly resourceGroup: string;
}

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

/** Of the managed identity by which kubelets pull images. */
export const kubeletIdentityName = (clusterName: string): string => `${clusterName}-kubelet`;

/** Names of the managed identities that this program makes. */
export const identityNames = (settings: Settings): string[] => {
  const { clusterName, workloadIdentities } = settings;
  return [
    ...(hasOwnIdentity(settings) ? [clusterName] : []),
    ...(hasOwnKubeletIdentity(settings) ? [kubeletIdentityName(clusterName)] : []),
    ...workloadIdentities
      .filter(({ identityId }) => identityId === "")
      .map((one) => azureName(clusterName, one)),
  ];
};

/**
 * The DNS label of the API: unique in a region, since it carries a hash of subscription and
 * cluster, and the same for ever, since certificates and kubeconfigs carry it.
 */
export function dnsLabel(clusterName: string, subscriptionId: string): string {
  return `${clusterName}-${clusterHash(clusterName, subscriptionId).slice(0, 8)}`;
}

/** The account that Entra reads the issuer's documents from. All of Azure has one namespace for them. */
export const issuerAccount = (clusterName: string, subscriptionId: string): string =>
  `oidc${clusterHash(clusterName, subscriptionId).slice(0, 20)}`;

/** The container in it. */
export const issuerContainer = "issuer";
