import { ResourceType } from "./resource-type";
import {
  federatedIdentityCredential,
  userAssignedIdentity,
} from "./authorization/managed-identity";
import {
  managementLock,
  policyAssignment,
  policyDefinition,
  policyExemption,
} from "./authorization/guardrails";
import { roleAssignment, roleDefinition } from "./authorization/role";
import { disk, diskEncryptionSet, snapshot } from "./compute/disk";
import { gallery, galleryImage } from "./compute/gallery";
import { galleryImageVersion } from "./compute/gallery-image-version";
import { virtualMachine } from "./compute/virtual-machine";
import { virtualMachineExtension } from "./compute/virtual-machine-extension";
import { registry } from "./containerregistry/registry";
import { loadBalancer } from "./network/load-balancer";
import { networkInterface } from "./network/network-interface";
import { networkSecurityGroup, securityRule } from "./network/network-security-group";
import { natGateway, routeTable } from "./network/outbound";
import { publicIpAddress } from "./network/public-ip-address";
import { subnet, virtualNetwork, virtualNetworkPeering } from "./network/virtual-network";
import { privateRecordSet, privateZone, virtualNetworkLink } from "./private-dns";
import { resourceGroup } from "./resource-group";
import { blobContainer, blobService, storageAccount } from "./storage";
import { ArmId, parseId } from "../resources/resource";

/** Every type that the local Azure supports. */
export const resourceTypes: readonly ResourceType[] = [
  blobContainer,
  blobService,
  disk,
  federatedIdentityCredential,
  diskEncryptionSet,
  gallery,
  galleryImage,
  galleryImageVersion,
  loadBalancer,
  managementLock,
  natGateway,
  networkInterface,
  networkSecurityGroup,
  policyAssignment,
  policyDefinition,
  policyExemption,
  privateRecordSet,
  privateZone,
  publicIpAddress,
  registry,
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
  virtualNetworkLink,
  virtualNetworkPeering,
];

const byType = new Map(resourceTypes.map((type) => [type.type.toLowerCase(), type]));
const byToken = new Map(resourceTypes.map((type) => [type.token, type]));

export const typeOf = (type: string): ResourceType | undefined => byType.get(type.toLowerCase());

export const typeOfToken = (token: string): ResourceType | undefined => byToken.get(token);

/** A sub-resource: it has an id but changes with its parent, such as a load balancer's pool. */
export interface SubResourceId {
  readonly owner: ArmId;
  readonly ownerType: ResourceType;
  /** The list of the owner that it is in. */
  readonly list: string;
  readonly name: string;
}

export function subResourceOf(id: ArmId | undefined): SubResourceId | undefined {
  const owner = id && parseId(id.parent);
  const ownerType = owner && typeOf(owner.type);
  const list = ownerType?.subResources?.find((name) =>
    id!.type.toLowerCase().endsWith(`/${name.toLowerCase()}`),
  );
  return list === undefined
    ? undefined
    : { owner: owner!, ownerType: ownerType!, list, name: id!.name };
}
