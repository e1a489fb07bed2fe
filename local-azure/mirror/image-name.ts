/** A full name's parts: registry, name there, tag. */
export function partsOf(image: string): { registry: string; name: string; tag: string } {
  const [, registry, name, tag] = /^([^/]+)\/(.+):([^:/]+)$/.exec(image) ?? [];
  if (registry && name && tag) return { registry, name, tag };
  throw new Error(`${image} is no full name of an image: registry/name:tag`);
}
