import { digest } from "../digest";
import { hasOwnKubeletIdentity } from "../settings/logins";
import { quoted } from "../settings/problem";
import type { Settings } from "../settings/settings";
import type { ArmClient, AzureConnection } from "./resource-manager";
import { type ExistingNetwork, type NetworkPart, networkParts } from "./existing-network";
import { groupId, kubeletIdentityName } from "./resource-names";
import { type Permission, permits, permitsData } from "./rights";

const version = { "api-version": "2022-04-01" };

/** An identity of others, and what it needs. */
export interface Needy {
  /** Azure's id. */
  readonly id: string;
  /** None while it is still to be made. */
  readonly principalId: string | undefined;
  readonly needed: readonly NeededRight[];
  /** Who needs them, and what becomes of them without. */
  readonly users: string;
}

/** How far a stack is. */
interface Progress {
  /** Whether its resource group is there, so that Azure can say what is assigned at it. */
  readonly isGroupThere: boolean;
  /** Whether it has resources: what may not be read was asked for before the first one. */
  readonly isBegun: boolean;
}

/**
 * Which rights an existing identity lacks, with the commands that give them, as a text for whoever may
 * run these; undefined where it lacks none. Not a refusal: rights at the resource group can be given when
 * that is there, which is after the first update has begun, and what needs them tries again.
 */
export async function lackingRights(
  settings: Settings,
  { arm, subscriptionId }: AzureConnection,
  { id, principalId, needed, users }: Needy,
  { isGroupThere, isBegun }: Progress,
): Promise<string | undefined> {
  const subscription = `/subscriptions/${subscriptionId}`;
  const group = groupId(settings, subscriptionId);
  const scopes = [...new Set(needed.map(({ scope }) => scope))];
  const isInGroup = (scope: string) => scope === group || scope.startsWith(`${group}/`);
  // Of what is still to be made Azure says nothing, not even what it will have from above.
  const askedFor = (scope: string): string[] => {
    if (!isInGroup(scope)) return [scope];
    return isGroupThere ? [scope, group] : [subscription];
  };
  const given = new Map(
    await Promise.all(
      scopes.map(
        async (scope) =>
          [
            scope,
            principalId === undefined ? [] : await givenAt(arm, askedFor(scope), principalId),
          ] as const,
      ),
    ),
  );
  const isRead = (scope: string) => given.get(scope) !== undefined;
  const lacking = needed.filter(
    (one) => lacks(one, given.get(one.scope)) && (isRead(one.scope) || !isBegun),
  );
  if (lacking.length === 0) return undefined;
  const unread = isBegun ? [] : scopes.filter((scope) => !isRead(scope));
  return [
    `The identity ${id} ${unread.length > 0 ? `may lack rights, which the login may not read at ${unread.join(", ")}` : "lacks rights"}. ` +
      `${users}. Have this run by who may assign roles:`,
    ...commands(lacking, principalId ?? askedOf(id), (role) => {
      const hash = digest(role).slice(0, 8);
      return `${settings.clusterName} ${hash} (${subscriptionId})`;
    }),
    ...(isGroupThere || !scopes.some(isInGroup)
      ? []
      : [
          `What is for ${group}, or in it: as soon as that is there, while the first pulumi up goes on.`,
        ]),
    ...(principalId === undefined
      ? ["As soon as that identity is there, while the first pulumi up goes on."]
      : []),
  ].join("\n  ");
}

/** As a shell takes it. */
const askedOf = (id: string): string =>
  `"$(az identity show --ids ${quoted(id)} --query principalId --output tsv)"`;

/** Undefined where the login may not read it. */
async function givenAt(
  arm: ArmClient,
  scopes: readonly string[],
  principalId: string,
): Promise<Permission[] | undefined> {
  // Of groups that the identity is in, too.
  const query = { ...version, $filter: `atScope() and assignedTo('${principalId}')` };
  const example = { properties: { roleDefinitionId: "" } };
  try {
    const assigned = await Promise.all(
      scopes.map((scope) => {
        const path = `${scope}/providers/Microsoft.Authorization/roleAssignments`;
        return arm.listOnce<typeof example>(path, query, example);
      }),
    );
    const ids = new Set(assigned.flat().map(({ properties }) => properties.roleDefinitionId));
    const roles = await Promise.all(
      [...ids].map((id) =>
        arm.getOnce<{ properties: { permissions: Permission[] } }>(id, version, {}),
      ),
    );
    return roles.flatMap((role) => role?.properties.permissions ?? []);
  } catch {
    return undefined;
  }
}

const lacks = (
  { actions, dataActions = [] }: NeededRight,
  given: readonly Permission[] = [],
): boolean =>
  actions.some((action) => !permits(given, action)) ||
  dataActions.some((action) => !permitsData(given, action));

/** What `az role definition create` takes, without a name. */
interface CustomRole {
  readonly Actions: readonly string[];
  readonly AssignableScopes: string[];
}

/**
 * A role of its own for each set of actions, wherever it is assigned.
 *
 * @param nameOf by its content: no two roles of a tenant may have the same name, and what is lacking another time is another role
 */
function commands(
  lacking: readonly NeededRight[],
  principalId: string,
  nameOf: (role: CustomRole) => string,
): string[] {
  const roles = new Map<string, CustomRole>();
  for (const { scope, actions, builtIn } of lacking) {
    if (builtIn !== undefined) continue;
    const subscription = scope.split("/", 3).join("/");
    roles.set(actions.join(), { Actions: actions, AssignableScopes: [subscription] });
  }
  return [
    ...[...roles.values()].map((role) => {
      const named = { Name: nameOf(role), ...role };
      return `az role definition create --role-definition '${JSON.stringify(named)}'`;
    }),
    ...lacking.map(
      ({ scope, actions, builtIn = nameOf(roles.get(actions.join())!) }) =>
        `az role assignment create --assignee-object-id ${principalId} --assignee-principal-type ServicePrincipal ` +
        `--role '${builtIn}' --scope ${quoted(scope)}`,
    ),
  ];
}

/** Rights at one scope, and the role that gives them. */
export interface NeededRight {
  readonly scope: string;
  readonly actions: readonly string[];
  readonly dataActions?: readonly string[];
  /** The name of one of Azure's built-in roles; without it, the actions want a role of their own. */
  readonly builtIn?: string;
}

/**
 * What the cloud provider and the disk driver do with machines, disks and snapshots, and what Azure
 * wants of them for what a disk names: an encryption set is to be read, a disk or snapshot that is
 * copied is to be accessed. The smallest built-in role with all of this may also run commands on every
 * machine. Upstream lists more, for scale sets, Azure Files and networks: there are none of the first
 * two here, and networks have a role of their own.
 *
 * @see https://github.com/kubernetes-sigs/azuredisk-csi-driver/blob/master/docs/driver-parameters.md
 * @see https://cloud-provider-azure.sigs.k8s.io/topics/azure-permissions/
 * @see https://learn.microsoft.com/azure/aks/concepts-identity
 */
const onMachines = [
  "virtualMachines/read",
  "virtualMachines/instanceView/read",
  "virtualMachines/write",
  "disks/read",
  "disks/write",
  "disks/delete",
  "disks/beginGetAccess/action",
  "diskEncryptionSets/read",
  "snapshots/read",
  "snapshots/write",
  "snapshots/delete",
  "locations/DiskOperations/read",
  "locations/operations/read",
  "locations/vmSizes/read",
].map((action) => `Microsoft.Compute/${action}`);

/** With what `autoRepair` asks of Azure. */
export const machineRights = ({ autoRepair }: Pick<Settings, "autoRepair">): string[] => [
  ...onMachines,
  ...(autoRepair ? ["restart", "redeploy"] : []).map(
    (does) => `Microsoft.Compute/virtualMachines/${does}/action`,
  ),
];

/** What the cloud provider does with Services of type LoadBalancer. */
const onNetworks = [
  ...["read", "write", "delete"].flatMap((verb) => [
    `loadBalancers/${verb}`,
    `loadBalancers/backendAddressPools/${verb}`,
    `publicIPAddresses/${verb}`,
  ]),
  "publicIPAddresses/join/action",
  "privateLinkServices/read",
  "routeTables/read",
].map((action) => `Microsoft.Network/${action}`);

const ofNetwork = (...actions: readonly string[]): string[] =>
  actions.map((action) => `Microsoft.Network/${action}`);

/**
 * What the cloud provider does in a network, by where. Its pools of addresses name the network: which right Azure
 * asks for is not in its reference, and AKS wants joinLoadBalancer. It reads a subnet to put an internal balancer into
 * it, and writes rules of Services into the security group. It reads no network, and puts no group on anything.
 *
 * @see cloud-provider-azure 1.36, pkg/provider: subnetRepo, backendPoolTypeNodeIP and securityGroupRepo
 * @see https://learn.microsoft.com/azure/aks/concepts-identity
 */
export const inNetworks: Readonly<Record<NetworkPart, readonly string[]>> = {
  network: ofNetwork("virtualNetworks/join/action", "virtualNetworks/joinLoadBalancer/action"),
  subnet: ofNetwork("virtualNetworks/subnets/read", "virtualNetworks/subnets/join/action"),
  "security-group": ofNetwork("networkSecurityGroups/read", "networkSecurityGroups/write"),
};

const onBlobs = ["read", "write", "delete"].map(
  (verb) => `Microsoft.Storage/storageAccounts/blobServices/containers/blobs/${verb}`,
);

/** What an existing identity needs: the same as role-assignments.ts gives to the program's own. */
export function neededRights(
  settings: Settings,
  subscriptionId: string,
  network?: ExistingNetwork,
): NeededRight[] {
  const { cloudProvider, diskDriver, diskEncryptionSetId, etcdBackups, identityId } = settings;
  const { autoRepair, clusterName } = settings;
  const subscription = `/subscriptions/${subscriptionId}`;
  const group = groupId(settings, subscriptionId);
  const container = etcdBackups?.container;
  const isUsed = cloudProvider || diskDriver;
  const kubelets = hasOwnKubeletIdentity(settings)
    ? `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${kubeletIdentityName(clusterName)}`
    : settings.kubeletIdentityId;
  const needed: (NeededRight | false)[] = [
    cloudProvider && {
      scope: group,
      builtIn: "Network Contributor",
      actions:
        network === undefined ? [...onNetworks, ...Object.values(inNetworks).flat()] : onNetworks,
    },
    ...networkParts(settings, network).map(({ scope, part }) => ({
      scope,
      actions: inNetworks[part],
    })),
    (isUsed || autoRepair) && {
      scope: group,
      actions: [
        ...machineRights(settings),
        // Who attaches a disk writes the machine, and Azure asks for all that it has (azuredisk-csi-driver #3112).
        ...(diskDriver ? ofNetwork("networkInterfaces/join/action") : []),
      ],
    },
    isUsed &&
      diskEncryptionSetId !== "" && {
        scope: diskEncryptionSetId,
        builtIn: "Reader",
        actions: ["Microsoft.Compute/diskEncryptionSets/read"],
      },
    // Those of machines.
    ...[identityId, kubelets].map(
      (scope): NeededRight | false =>
        isUsed &&
        scope !== "" && {
          scope,
          builtIn: "Managed Identity Operator",
          actions: ["Microsoft.ManagedIdentity/userAssignedIdentities/assign/action"],
        },
    ),
    cloudProvider && {
      scope: subscription,
      actions: ["Microsoft.Resources/subscriptions/providers/read"],
    },
    container !== undefined && {
      scope: container,
      builtIn: "Storage Blob Data Contributor",
      actions: [],
      dataActions: onBlobs,
    },
  ];
  return needed.filter((one) => one !== false);
}
