import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { groupId, groupName } from "./azure/resource-names";
import { ownTag } from "./azure/stack-tag";
import type { Roles } from "./roles";
import type { Settings } from "./settings/settings";

/** The resource group that everything is in. What has its name or id of here is deleted before the cluster's roles. */
export interface ClusterGroup {
  readonly name: pulumi.Output<string>;
  readonly id: pulumi.Output<string>;
  /** Undefined where others have made it: then all that is in it is deleted by itself. */
  readonly own?: ResourceGroup;
}

export interface ClusterGroupArgs {
  readonly settings: Pick<Settings, "clusterName" | "location" | "protect" | "resourceGroup">;
  readonly subscriptionId: string;
}

/** Makes the cluster's resource group, or takes the one that the settings name, and changes nothing of that. */
export function clusterGroup(
  { settings, subscriptionId }: ClusterGroupArgs,
  roles: Roles,
): ClusterGroup {
  if (settings.resourceGroup !== "") {
    return {
      name: roles.urn.apply(() => groupName(settings)),
      id: roles.urn.apply(() => groupId(settings, subscriptionId)),
    };
  }
  const own = new ResourceGroup(
    "cluster",
    { resourceGroupName: settings.clusterName, location: settings.location, tags: ownTag() },
    { protect: settings.protect, dependsOn: [roles] },
  );
  return { name: own.name, id: own.id, own };
}
