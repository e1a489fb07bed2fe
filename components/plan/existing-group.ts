import { apiZone } from "../api-server";
import { type Lock, lockRemoval, lockText } from "../azure/locks";
import { apiBalancerName, egressNames, identityNames, networkNames } from "../azure/resource-names";
import { shownAs, type ShownResource } from "../azure/shown";
import { isOfThisStack, stackName, stackOf, stackTag } from "../azure/stack-tag";
import type { AzureAnswer } from "../azure/state";
import { quoted, toSet } from "../settings/problem";
import type { Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";
import type { MachineChange } from "./machine-changes";

interface Group {
  readonly azure: Pick<AzureAnswer, "groupLocation" | "isBegun" | "isOwnGroup" | "shown">;
  /** Whether the stack's outputs have a cluster. */
  readonly isKnown: boolean;
  readonly locks: readonly Lock[];
  readonly subscriptionId: string;
  readonly machines: readonly Pick<MachinePlan, "name">[];
  /** What this update would do to existing machines. */
  readonly changes: readonly MachineChange[];
}

/** Why the cluster cannot be, or be changed, in its resource group. */
export function existingGroupProblems(settings: Settings, group: Group): string[] {
  const { resourceGroup, location } = settings;
  const { azure, subscriptionId } = group;
  const { groupLocation } = azure;
  if (resourceGroup === "") return [...takenGroup(settings, group), ...lockProblems(group)];
  if (groupLocation === undefined) {
    return [
      `resourceGroup is ${resourceGroup}, and subscription ${subscriptionId} has no such group, or this login does not see it: ` +
        `have it made (az group create --name ${quoted(resourceGroup)} --location ${location}), with the role Contributor on it for who runs Pulumi, ` +
        "or let this program make one (pulumi config rm resourceGroup)",
    ];
  }
  return [
    ...(groupLocation === location
      ? []
      : [
          `resourceGroup is ${resourceGroup}, which is in ${groupLocation}, and location is ${location}: a group's region keeps what Azure knows of its ` +
            `resources, and without that region none of them can be changed. Name a group in ${location}, or take the group's region ` +
            `(${toSet("location", groupLocation)})`,
        ]),
    ...takenNames(settings, group),
    ...lockProblems(group),
  ];
}

/** What a lock keeps from being done later. */
export const lockWarnings = (group: Pick<Group, "locks" | "changes">): string[] =>
  forbiddingDeletion(group)
    .filter(() => deletedIn(group).length === 0)
    .map(
      (lock) =>
        `${lockText(lock)}: Azure will refuse to replace or remove a machine, and pulumi destroy. Have it removed before: ${lockRemoval(lock)}`,
    );

function lockProblems(group: Group): string[] {
  const deleted = deletedIn(group);
  return [
    ...group.locks
      .filter(({ properties }) => properties.level === "ReadOnly")
      .map(
        (lock) =>
          `${lockText(lock)}, under which Azure makes and changes nothing: ${lockRemoval(lock)}`,
      ),
    ...(deleted.length === 0 ? [] : forbiddingDeletion(group)).map(
      (lock) =>
        `${lockText(lock)}, and this change would delete the VM of ${deleted.join(", ")}, after its drain: ${lockRemoval(lock)}`,
    ),
  ];
}

const forbiddingDeletion = ({ locks }: Pick<Group, "locks">): Lock[] =>
  locks.filter(({ properties }) => properties.level === "CanNotDelete");

const deletedIn = ({ changes }: Pick<Group, "changes">): string[] =>
  changes
    .filter(({ action }) => action === "replace" || action === "remove")
    .map(({ machine }) => machine);

/** A resource group that has the name of this cluster's and that this stack has not made. */
function takenGroup({ clusterName }: Settings, { azure }: Group): string[] {
  if (azure.groupLocation === undefined || azure.isOwnGroup) return [];
  const group = azure.shown.get(shownAs("azure-native:resources:ResourceGroup", clusterName));
  const theirs = stackOf(group?.["tags"]);
  const tag = `${stackTag}=${stackName()}`;
  return [
    `resource group ${clusterName} is there already, ${theirs === undefined ? "without the tag" : `with the tag ${stackTag}=${theirs}, expected`} ${tag}, ` +
      "which this stack gives to its own, and pulumi destroy would delete all that is in it: " +
      `take another name for the cluster (${toSet("clusterName", "NAME")})` +
      (theirs === undefined
        ? `, or make it beside what that group has (${toSet("resourceGroup", clusterName)}). Where this stack has made the group and somebody has taken its ` +
          `tag away: az tag update --operation Merge --tags ${tag} --resource-id ${group?.["id"]}`
        : ""),
  ];
}

/** What has the names of this cluster's resources. */
const shownIn = (settings: Settings, group: Group): ShownResource[] =>
  namesOf(settings, group).flatMap((name) => group.azure.shown.get(name) ?? []);

/** Ids of what has not the tag of this stack. */
const takenIn = (settings: Settings, group: Group): string[] =>
  shownIn(settings, group)
    .filter((one) => !isOfThisStack(one))
    .map(({ id }) => String(id));

/** Whether this cluster's machines only seem to be lost, in a group that others use too. */
export const lacksTags = (settings: Settings, group: Group): boolean =>
  settings.resourceGroup !== "" && group.isKnown && takenIn(settings, group).length > 0;

function takenNames(settings: Settings, group: Group): string[] {
  const taken = takenIn(settings, group);
  if (taken.length === 0) return [];
  const tag = `${stackTag}=${stackName()}`;
  // Where some have the tag, no other one need be this stack's.
  if (group.isKnown && !shownIn(settings, group).some(isOfThisStack)) {
    return [
      `resource group ${settings.resourceGroup} has what this stack's cluster is made of without the tag ${tag}. Where the stack or its organization had another ` +
        "name when it made that (pulumi stack rename, another backend), or somebody has taken the tags away, give it this one, then run pulumi up: " +
        `for id in ${taken.map(quoted).join(" ")}; do az tag update --operation Merge --tags ${tag} --resource-id $id; done`,
    ];
  }
  return [
    `resource group ${settings.resourceGroup} has ${taken.join(", ")}, which this cluster's resources are called, without the tag ${tag} that those of ` +
      "this stack have: take another name for the cluster (pulumi config set clusterName NAME). Where this stack has made one of them and somebody has taken " +
      `its tag away: az tag update --operation Merge --tags ${tag} --resource-id ID`,
  ];
}

/**
 * As {@link AzureAnswer.shown} has them. A first cluster's cloud provider takes balancers of its two names for its own,
 * such as that of another cluster's API; later it has made them itself, without this stack's tag in a network of others.
 */
function namesOf(settings: Settings, { azure, machines, subscriptionId }: Group): string[] {
  const { clusterName, nodeSubnets, apiAccess, apiName, cloudProvider } = settings;
  const { virtualNetwork, securityGroup, routeTable } = networkNames(clusterName);
  const isPublic = apiAccess === "public";
  const names: Readonly<Record<string, readonly string[]>> = {
    "network:VirtualNetwork": nodeSubnets.length > 0 ? [] : [virtualNetwork],
    "network:NetworkSecurityGroup": nodeSubnets.length > 0 ? [] : [securityGroup],
    "network:RouteTable": nodeSubnets.length > 0 ? [] : [routeTable],
    "network:NatGateway": egressNames(settings),
    "network:PublicIPAddress": [
      ...egressNames(settings),
      ...(isPublic ? [apiBalancerName(clusterName)] : []),
    ],
    "network:LoadBalancer": [
      apiBalancerName(clusterName),
      ...(cloudProvider && !azure.isBegun ? [clusterName, `${clusterName}-internal`] : []),
    ],
    "privatedns:PrivateZone":
      isPublic || apiName !== "" ? [] : [apiZone(clusterName, subscriptionId)],
    "managedidentity:UserAssignedIdentity": identityNames(settings),
    "network:NetworkInterface": machines.map(({ name }) => `${name}-nic`),
    "compute:VirtualMachine": machines.map(({ name }) => name),
  };
  return Object.entries(names).flatMap(([type, all]) =>
    all.map((name) => shownAs(`azure-native:${type}`, name)),
  );
}
