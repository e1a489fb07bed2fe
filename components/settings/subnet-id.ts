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
