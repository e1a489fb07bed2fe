import { type ExistingNetwork, type NetworkPart, networkParts } from "./existing-network";
import { hasOwnKubeletIdentity } from "../settings/own-identity";
import type { Settings } from "../settings/settings";
import { groupId, kubeletIdentityName } from "./resource-names";

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
    ...networkParts(network).map(
      ({ scope, part }): NeededRight | false =>
        cloudProvider && { scope, actions: inNetworks[part] },
    ),
    (isUsed || autoRepair) && { scope: group, actions: machineRights(settings) },
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
