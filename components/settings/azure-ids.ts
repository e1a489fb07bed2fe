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
