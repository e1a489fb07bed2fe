const versionId =
  /^(\/subscriptions\/[0-9a-f-]{36}\/resourceGroups\/([^/]+)\/providers\/Microsoft\.Compute\/galleries\/[\w.]{1,80}\/images\/[\w.-]{1,80})\/versions\/\d+\.\d+\.\d+$/i;

/** The parts of a gallery image version's id; undefined for what is none. */
export function parseGalleryImage(id: string) {
  const [, definition, resourceGroup] = versionId.exec(id) ?? [];
  return definition === undefined ? undefined : { definition, resourceGroup: resourceGroup! };
}
