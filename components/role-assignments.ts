import * as authorization from "@pulumi/azure-native/authorization";
import * as pulumi from "@pulumi/pulumi";

import type { ExistingNetwork } from "./azure/existing-network";
import {
  assignmentName,
  builtIn,
  foreignRoleId,
  foreignRoles,
  isOwnRole,
  roleAt,
} from "./azure/role-ids";
import { pullAssignments, type Registry } from "./azure/registries";
import type { ClusterGroup } from "./cluster-group";
import { Identity, type KubeletIdentity } from "./identity";
import { Roles } from "./roles";
import { hasOwnKubeletIdentity } from "./settings/logins";
import { Settings } from "./settings/settings";

interface Assigned {
  readonly principalId: pulumi.Input<string>;
  readonly scope: pulumi.Input<string>;
  readonly roleDefinitionId: pulumi.Input<string>;
}

/**
 * For a role that may have been assigned by another subscription's id of it: Azure takes both ids for one role, which it
 * does not assign twice.
 */
export const oneAtATime: pulumi.CustomResourceOptions = { deleteBeforeReplace: true };

/** Gives a role to a managed identity. */
export const assignRole = (
  name: string,
  { principalId, scope, roleDefinitionId }: Assigned,
  opts: pulumi.CustomResourceOptions,
): authorization.RoleAssignment =>
  new authorization.RoleAssignment(
    name,
    {
      scope,
      roleDefinitionId,
      principalId,
      principalType: "ServicePrincipal",
      roleAssignmentName: pulumi
        .all([principalId, scope, roleDefinitionId])
        .apply((parts) => assignmentName(...parts)),
    },
    opts,
  );

export interface RoleAssignmentsArgs {
  readonly resourceGroup: ClusterGroup;
  readonly roles: Roles;
  readonly identity: Identity;
  readonly kubeletIdentity: KubeletIdentity;
  readonly registries: readonly Registry[];
  readonly settings: Settings;
  readonly existingNetwork?: ExistingNetwork;
  readonly subscriptionId: string;
  /**
   * Something that takes a minute: a new identity and a new role are not known to all of Azure at
   * once. What is refused for it all the same is asked for again; see refusals.ts.
   */
  readonly after: pulumi.Resource;
}

/**
 * The rights that the cloud provider and the disk driver need, in networks more than that, and those by which
 * kubelets pull images; none where the settings name an identity, whose rights are others' to give, or a service
 * principal.
 *
 * Azure honours a new assignment within seconds to minutes; what runs on the machines retries for
 * so long.
 */
export class RoleAssignments extends pulumi.ComponentResource {
  constructor(name: string, args: RoleAssignmentsArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:RoleAssignments", name, {}, opts);
    const { resourceGroup, roles, identity, kubeletIdentity, settings, existingNetwork } = args;
    const { registries, subscriptionId, after } = args;
    for (const { scope, role } of pullAssignments(settings, registries, subscriptionId)) {
      assignRole(
        `${name}-pulls-${scope.split("/").at(-1)!.toLowerCase()}`,
        { principalId: kubeletIdentity.principalId!, scope, roleDefinitionId: role },
        { parent: this, dependsOn: [after] },
      );
    }
    const { principalId, resourceId } = identity;
    if (principalId === undefined || resourceId === undefined) {
      this.registerOutputs();
      return;
    }

    const inGroup = { deletedWith: resourceGroup.own };
    const subscription = `/subscriptions/${subscriptionId}`;
    const role = (id: string) => roleAt(id, "", subscriptionId);
    const assign = (
      what: string,
      scope: pulumi.Input<string>,
      roleDefinitionId: pulumi.Input<string>,
      options: pulumi.CustomResourceOptions = {},
    ) =>
      assignRole(
        `${name}-${what}`,
        { principalId, scope, roleDefinitionId },
        { parent: this, dependsOn: [after], ...options },
      );
    assign("network", resourceGroup.id, role(builtIn.networkContributor), inGroup);
    // Not with the group, but before it: Azure deletes no role that is assigned.
    assign("machines", resourceGroup.id, roles.ids.get("attaches-disks")!);
    // Attaching a disk is a PUT of location and data disks alone (as the driver does it). Whether Azure then
    // also checks the right to the identity that the machine has is not documented; OpenShift's
    // cluster-storage-operator asks for it for such machines.
    assign("itself", resourceId, role(builtIn.managedIdentityOperator), inGroup);
    // Machines have this one, too. One of others may not be this login's to assign roles at: registries.ts names what
    // lacks there.
    if (hasOwnKubeletIdentity(settings)) {
      assign(
        "kubelets",
        kubeletIdentity.resourceId!,
        role(builtIn.managedIdentityOperator),
        inGroup,
      );
    }

    // Not with the group: all of these scopes lie in others.
    for (const one of foreignRoles(settings, existingNetwork)) {
      if (isOwnRole(one.role)) assign(one.what, one.scope, roles.ids.get(one.role)!);
      else assign(one.what, one.scope, foreignRoleId(one, settings, subscriptionId), oneAtATime);
    }

    assign("zones", subscription, roles.ids.get("reads-providers")!);

    this.registerOutputs();
  }
}
