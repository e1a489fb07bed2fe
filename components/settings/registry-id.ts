const registryId =
  /^\/subscriptions\/[0-9a-f-]{36}\/resourceGroups\/([^/]+)\/providers\/Microsoft\.ContainerRegistry\/registries\/([a-z0-9]{5,50})$/i;

/** The parts of a container registry's id; undefined for what is none. */
export function parseRegistry(id: string) {
  const [, resourceGroup, name] = registryId.exec(id) ?? [];
  return resourceGroup === undefined ? undefined : { resourceGroup, name: name! };
}
