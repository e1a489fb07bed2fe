const identityId =
  /^\/subscriptions\/[0-9a-f-]{36}\/resourceGroups\/([^/]+)\/providers\/Microsoft\.ManagedIdentity\/userAssignedIdentities\/([^/]+)$/i;

/** The parts of a user-assigned identity's id; undefined for what is none. */
export function parseIdentity(id: string) {
  const [, resourceGroup, name] = identityId.exec(id) ?? [];
  return resourceGroup === undefined ? undefined : { resourceGroup, name: name! };
}
