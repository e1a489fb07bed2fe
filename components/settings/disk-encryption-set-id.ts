const setId =
  /^\/subscriptions\/([0-9a-f-]{36})\/resourceGroups\/([^/]+)\/providers\/Microsoft\.Compute\/diskEncryptionSets\/[\w-]{1,80}$/i;

/** The parts of a disk encryption set's id; undefined for what is none. */
export function parseDiskEncryptionSet(id: string) {
  const [, subscriptionId, resourceGroup] = setId.exec(id) ?? [];
  return subscriptionId === undefined
    ? undefined
    : { subscriptionId, resourceGroup: resourceGroup! };
}
