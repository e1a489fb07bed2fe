import type * as pulumi from "@pulumi/pulumi";
import { isDryRun } from "@pulumi/pulumi/runtime/settings";

import { hasIssuer } from "../settings/logins";
import { Settings } from "../settings/settings";
import { ArmClient, isUnregistered } from "./resource-manager";
import { identityNames, networkNames } from "./resource-names";

/** A resource as Resource Manager's REST API shows it. */
export interface ShownResource {
  readonly name: string;
  readonly properties?: Readonly<Record<string, unknown>>;
  /** Not Azure's, of a NAT gateway: public ranges that others have put on it, and that it sends from as well. */
  readonly addedRanges?: readonly string[];
  readonly [property: string]: unknown;
}

/**
 * What Azure shows of the resources that others write on too, by `shownAs`. One that is missing here
 * does not exist, or is the program's alone.
 */
export type Shown = ReadonlyMap<string, ShownResource>;

/**
 * @param token Pulumi's type token
 * @param name within the cluster's resource group; of a bootstrap step that of its machine
 */
export const shownAs = (token: string, name: string): string => `${token} ${name.toLowerCase()}`;

/** A text that Azure shows among the properties of a resource, if it has it. */
export function shownText(
  shown: Shown,
  token: string,
  name: string,
  property: string,
): string | undefined {
  const text = shown.get(shownAs(token, name))?.properties?.[property];
  return typeof text === "string" ? text : undefined;
}

const networkTypes = {
  LoadBalancer: "loadBalancers",
  NatGateway: "natGateways",
  NetworkInterface: "networkInterfaces",
  NetworkSecurityGroup: "networkSecurityGroups",
  PublicIPAddress: "publicIPAddresses",
  RouteTable: "routeTables",
  VirtualNetwork: "virtualNetworks",
} as const;

/** A living cluster may be about to get its first account, and providers are looked at elsewhere. */
function noneWhereUnregistered(error: Error): [] {
  if (isUnregistered(error.message)) return [];
  throw error;
}

/** Asks for what is in the resource group of one type. */
type List = (token: string, path: string, version: string) => Promise<[string, ShownResource][]>;

/** Zones, and the links of each. */
async function privateDns(list: List): Promise<[string, ShownResource][]> {
  const [path, version] = ["Microsoft.Network/privateDnsZones", "2024-06-01"];
  const zones = await list("azure-native:privatedns:PrivateZone", path, version);
  const links = zones.map(([, { name }]) =>
    list(
      "azure-native:privatedns:VirtualNetworkLink",
      `${path}/${name}/virtualNetworkLinks`,
      version,
    ),
  );
  return [...zones, ...(await Promise.all(links)).flat()];
}

/** Asks for what is in the resource group besides machines; see state.ts. */
export async function getShown(
  arm: ArmClient,
  group: string,
  settings: Settings,
): Promise<[string, ShownResource][]> {
  const list: List = async (token, path, version) => {
    const query = { "api-version": version };
    const found = await arm.listOnce<ShownResource>(`${group}/providers/${path}`, query, {
      name: "",
    });
    return found.map((one) => [shownAs(token, one.name), one]);
  };
  const lists = await Promise.all([
    ...Object.entries(networkTypes).map(([type, path]) =>
      list(`azure-native:network:${type}`, `Microsoft.Network/${path}`, "2024-05-01"),
    ),
    // A subscription in which no cluster has an identity of its own need not know this provider.
    ...(identityNames(settings).length > 0
      ? [
          list(
            "azure-native:managedidentity:UserAssignedIdentity",
            "Microsoft.ManagedIdentity/userAssignedIdentities",
            "2023-01-31",
          ),
        ]
      : []),
    ...(hasIssuer(settings)
      ? [
          list(
            "azure-native:storage:StorageAccount",
            "Microsoft.Storage/storageAccounts",
            "2024-01-01",
          ).catch(noneWhereUnregistered),
        ]
      : []),
  ]);
  const { apiAccess, apiName } = settings;
  const dns = apiAccess === "private" && apiName === "" ? await privateDns(list) : [];
  const shown = [...lists.flat(), ...dns];
  // Others in the same group may have subnets of the same names in networks of theirs.
  const network = shownAs(
    "azure-native:network:VirtualNetwork",
    networkNames(settings.clusterName).virtualNetwork,
  );
  const subnets = shown
    .filter(([key]) => key === network)
    .flatMap(
      ([, { properties }]) => (properties?.["subnets"] as ShownResource[] | undefined) ?? [],
    );
  return [
    ...shown,
    ...subnets
      .filter(({ name }) => name !== undefined)
      .map((one): [string, ShownResource] => [
        shownAs("azure-native:network:Subnet", one.name),
        one,
      ]),
  ];
}

/**
 * An output that Azure fills in once and keeps as long as the resource lives. A preview knows no
 * output of a resource that changes in any way, and would show everything as changed or replaced
 * that is made of it; what Azure has now is what it will be.
 *
 * What depends on the resource does so in a preview too, and is replaced with it.
 *
 * @param now what Azure shows; undefined where the resource is yet to be made, or made anew
 */
export const knownOutput = (
  output: pulumi.Output<string>,
  owner: pulumi.Resource,
  now: string | undefined,
): pulumi.Output<string> => (now !== undefined && isDryRun() ? owner.urn.apply(() => now) : output);
