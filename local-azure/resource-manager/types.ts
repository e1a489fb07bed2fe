import { disk } from "./types/disk";
import { loadBalancer } from "./types/load-balancer";
import { natGateway } from "./types/nat-gateway";
import { networkInterface } from "./types/network-interface";
import { networkSecurityGroup } from "./types/network-security-group";
import { publicIpAddress } from "./types/public-ip-address";
import { resourceGroup } from "./types/resource-group";
import { roleAssignment } from "./types/role-assignment";
import { roleDefinition } from "./types/role-definition";
import { routeTable } from "./types/route-table";
import { securityRule } from "./types/security-rule";
import { subnet } from "./types/subnet";
import { userAssignedIdentity } from "./types/user-assigned-identity";
import { virtualMachine } from "./types/virtual-machine";
import { virtualMachineExtension } from "./types/virtual-machine-extension";
import { virtualNetwork } from "./types/virtual-network";
import { ResourceType } from "./resource-type";

/** Every type that the local Azure knows. */
const resourceTypes: readonly ResourceType[] = [
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
