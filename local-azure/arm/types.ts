import { ResourceType } from "./resource-type";
import { roleAssignment } from "./types/authorization/role-assignment";
import { roleDefinition } from "./types/authorization/role-definition";
import { userAssignedIdentity } from "./types/authorization/user-assigned-identity";
import { disk } from "./types/compute/disk";
import { snapshot } from "./types/compute/snapshot";
import { virtualMachine } from "./types/compute/virtual-machine";
import { virtualMachineExtension } from "./types/compute/virtual-machine-extension";
import { loadBalancer } from "./types/network/load-balancer";
import { natGateway } from "./types/network/nat-gateway";
import { networkInterface } from "./types/network/network-interface";
import { networkSecurityGroup } from "./types/network/network-security-group";
import { publicIpAddress } from "./types/network/public-ip-address";
import { routeTable } from "./types/network/route-table";
import { securityRule } from "./types/network/security-rule";
import { subnet } from "./types/network/subnet";
import { virtualNetwork } from "./types/network/virtual-network";
import { resourceGroup } from "./types/resource-group";
import { blobContainer } from "./types/storage/blob-container";
import { blobService } from "./types/storage/blob-service";
import { storageAccount } from "./types/storage/storage-account";

/** Every type that the local Azure supports. */
export const resourceTypes: readonly ResourceType[] = [
  blobContainer,
  blobService,
  disk,
  loadBalancer,
  natGateway,
  networkInterface,
  networkSecurityGroup,
  publicIpAddress,
  resourceGroup,
  roleAssignment,
  roleDefinition,
  routeTable,
  securityRule,
  snapshot,
  storageAccount,
  subnet,
  userAssignedIdentity,
  virtualMachine,
  virtualMachineExtension,
  virtualNetwork,
];

const byType = new Map(resourceTypes.map((type) => [type.type.toLowerCase(), type]));
const byToken = new Map(resourceTypes.map((type) => [type.token, type]));

export const typeOf = (type: string): ResourceType | undefined => byType.get(type.toLowerCase());

export const typeOfToken = (token: string): ResourceType | undefined => byToken.get(token);
