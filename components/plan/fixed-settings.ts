import { toSet } from "../settings/problem";
import { apiBalancerName } from "../azure/resource-names";
import { shownAs } from "../azure/shown";
import { AzureAnswer } from "../azure/state";
import { digest } from "../digest";
import { Settings } from "../settings/settings";

/** What a cluster keeps for its life, by the names of the settings. */
export type FixedSettings = Pick<
  Settings,
  | "clusterName"
  | "location"
  | "zones"
  | "networkCidr"
  | "podCidr"
  | "serviceCidr"
  | "apiAccess"
  | "apiName"
  | "cni"
> & {
  /** Undefined where it is the cluster's own. */
  readonly resourceGroup?: Settings["resourceGroup"];
  /** Undefined where the network is the cluster's own. */
  readonly nodeSubnets?: Settings["nodeSubnets"];
};

const why: Readonly<Record<keyof FixedSettings, string>> = {
  resourceGroup:
    "a resource in another group is another resource, so that everything would be deleted",
  nodeSubnets: "its machines keep their subnets",
  clusterName: "its machines, disks and addresses would be deleted with their resource group",
  location: "Azure cannot move it, so that everything would be deleted",
  zones: "its addresses in Azure keep their zones",
  networkCidr: "its machines keep their addresses",
  podCidr: "its Nodes keep their ranges",
  serviceCidr: "its Services keep their addresses",
  apiAccess: "certificates and kubeconfigs name the API, which would have another name and address",
  apiName: "certificates and kubeconfigs name the API",
  cni: "its pods keep their network",
};

export const fixedSettings = (settings: Settings): FixedSettings => ({
  clusterName: settings.clusterName,
  resourceGroup: settings.resourceGroup === "" ? undefined : settings.resourceGroup,
  location: settings.location,
  zones: settings.zones,
  networkCidr: settings.networkCidr,
  nodeSubnets: settings.nodeSubnets.length === 0 ? undefined : settings.nodeSubnets,
  podCidr: settings.podCidr,
  serviceCidr: settings.serviceCidr,
  apiAccess: settings.apiAccess,
  apiName: settings.apiName,
  cni: settings.cni,
});

/** By which a step shows with which of them its cluster is begun. */
export const fixedDigest = (settings: Settings): string => digest(fixedSettings(settings));

/** What Azure says of it, before a first update has succeeded and of what an older release has not noted. */
export function fixedInAzure(
  { groupLocation, shown }: Pick<AzureAnswer, "groupLocation" | "shown">,
  { clusterName }: Pick<Settings, "clusterName">,
): Partial<FixedSettings> {
  const name = shownAs("azure-native:network:LoadBalancer", apiBalancerName(clusterName));
  const frontends = shown.get(name)?.properties?.["frontendIPConfigurations"] as
    { readonly properties?: { readonly subnet?: object } }[] | undefined;
  const [frontend] = frontends ?? [];
  const isInternal = frontend?.properties?.subnet !== undefined;
  return {
    location: groupLocation,
    apiAccess: frontend && (isInternal ? "private" : "public"),
  };
}

/** Zones in another order are the same zones; what that would move is refused by addresses.ts. */
const textOf = (key: string, value: string | readonly string[]): string =>
  (typeof value === "string" ? value : (key === "zones" ? [...value].sort() : value).join(", ")) ||
  "none";

/** What is the cluster's own is not noted; of a cluster of which anything is noted, that is known. */
const withOwn = ({ resourceGroup = "", nodeSubnets = [], ...made }: Partial<FixedSettings>) =>
  made.networkCidr === undefined ? made : { ...made, resourceGroup, nodeSubnets };

const commandsFor = (key: string, value: string | readonly string[]): string =>
  typeof value === "string"
    ? toSet(key, value)
    : [`pulumi config rm ${key}`, ...value.map((one, at) => toSet(`${key}[${at}]`, one))].join(
        "; ",
      );

/** Azure shows nothing of this stack's cluster in another subscription, so that it would be taken for lost. */
export function subscriptionProblem(subscriptionId: string, made: string | undefined): string[] {
  if (made === undefined || made.toLowerCase() === subscriptionId.toLowerCase()) return [];
  return [
    `this stack's cluster is in subscription ${made}, and the login's is ${subscriptionId}. Nothing was changed. ` +
      `Take the cluster's, then run pulumi again: az account set --subscription ${made}; or keep the stack to it, ` +
      `whatever the login or ARM_SUBSCRIPTION_ID says: pulumi config set azure-native:subscriptionId ${made}`,
  ];
}

/** Why the settings are not those of the cluster that this stack has. */
export function fixedProblems(wanted: Settings, made: Partial<FixedSettings> = {}): string[] {
  const known: Partial<FixedSettings> = withOwn(made);
  return (Object.keys(why) as (keyof FixedSettings)[]).flatMap((key) => {
    const had = known[key];
    if (had === undefined || textOf(key, had) === textOf(key, wanted[key])) return [];
    return [
      `${key} is ${textOf(key, wanted[key])}, and this stack's cluster was made with ${textOf(key, had)}: ${why[key]}. ` +
        `Take the change back (${commandsFor(key, had)}), or make it in a new stack (pulumi stack init)`,
    ];
  });
}

/** Before outputs know what the cluster was made with: a step shows that it was something else, and not what. */
export const changedProblems = (begunOtherwise: readonly { readonly name: string }[]): string[] =>
  begunOtherwise.length === 0
    ? []
    : [
        `${begunOtherwise.map(({ name }) => name).join(", ")} began this cluster with other settings of those that it keeps for its life ` +
          `(${Object.keys(why).join(", ")}), in an update that has not ended. Take that change back and run pulumi up until it ends well, ` +
          "or make it in a new stack (pulumi stack init)",
      ];
