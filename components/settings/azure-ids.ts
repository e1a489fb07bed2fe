const containerId =
  /^\/subscriptions\/([^/]+)\/resourceGroups\/([^/]+)\/providers\/Microsoft\.Storage\/storageAccounts\/([a-z0-9]{3,24})\/blobServices\/default\/containers\/([a-z0-9](?:-?[a-z0-9])+)$/i;
/** The parts of a blob container's id; undefined for what is none. */
export function parseContainer(id: string) {
  const [, subscriptionId, resourceGroup, account, container] = containerId.exec(id) ?? [];
  return subscriptionId === undefined
    ? undefined
    : {
        subscriptionId,
        resourceGroup: resourceGroup!,
        account: account!.toLowerCase(),
        container: container!,
      };
}

const setId =
  /^\/subscriptions\/([0-9a-f-]{36})\/resourceGroups\/([^/]+)\/providers\/Microsoft\.Compute\/diskEncryptionSets\/[\w-]{1,80}$/i;

/** The parts of a disk encryption set's id; undefined for what is none. */
export function parseDiskEncryptionSet(id: string) {
  const [, subscriptionId, resourceGroup] = setId.exec(id) ?? [];
  return subscriptionId === undefined
    ? undefined
    : { subscriptionId, resourceGroup: resourceGroup! };
}

const versionId =
  /^(\/subscriptions\/[0-9a-f-]{36}\/resourceGroups\/([^/]+)\/providers\/Microsoft\.Compute\/galleries\/[\w.]{1,80}\/images\/[\w.-]{1,80})\/versions\/\d+\.\d+\.\d+$/i;

/** The parts of a gallery image version's id; undefined for what is none. */
export function parseGalleryImage(id: string) {
  const [, definition, resourceGroup] = versionId.exec(id) ?? [];
  return definition === undefined ? undefined : { definition, resourceGroup: resourceGroup! };
}

const identityId =
  /^\/subscriptions\/[0-9a-f-]{36}\/resourceGroups\/([^/]+)\/providers\/Microsoft\.ManagedIdentity\/userAssignedIdentities\/([^/]+)$/i;

/** The parts of a user-assigned identity's id; undefined for what is none. */
export function parseIdentity(id: string) {
  const [, resourceGroup, name] = identityId.exec(id) ?? [];
  return resourceGroup === undefined ? undefined : { resourceGroup, name: name! };
}

const registryId =
  /^\/subscriptions\/[0-9a-f-]{36}\/resourceGroups\/([^/]+)\/providers\/Microsoft\.ContainerRegistry\/registries\/([a-z0-9]{5,50})$/i;

/** The parts of a container registry's id; undefined for what is none. */
export function parseRegistry(id: string) {
  const [, resourceGroup, name] = registryId.exec(id) ?? [];
  return resourceGroup === undefined ? undefined : { resourceGroup, name: name! };
}

const subnetId =
  /^(\/subscriptions\/([0-9a-f-]{36})\/resourceGroups\/([^/]+)\/providers\/Microsoft\.Network\/virtualNetworks\/([^/]+))\/subnets\/([^/]+)$/i;

/** The parts of a subnet's id; undefined for what is none. */
export function parseSubnet(id: string) {
  const [, networkId, subscriptionId, resourceGroup, network, subnet] = subnetId.exec(id) ?? [];
  return networkId === undefined
    ? undefined
    : {
        networkId,
        subscriptionId: subscriptionId!,
        resourceGroup: resourceGroup!,
        network: network!,
        subnet: subnet!,
      };
}
