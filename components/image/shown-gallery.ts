import type { AzureConnection } from "../azure/connection";
import { groupId } from "../azure/resource-names";
import { type Shown, shownAs, type ShownResource } from "../azure/shown";
import type { Settings } from "../settings/settings";
import { definitionName, galleryName, imageGroupName } from "./image-gallery";

/** What Azure shows of a gallery, its group and this version, on which others write tags too. */
export async function shownGallery(
  settings: Pick<Settings, "clusterName" | "resourceGroup">,
  version: string,
  { arm, subscriptionId }: AzureConnection,
): Promise<Shown> {
  const group = groupId({ ...settings, clusterName: imageGroupName(settings) }, subscriptionId);
  const gallery = `${group}/providers/Microsoft.Compute/galleries/${galleryName(settings)}`;
  const definition = `${gallery}/images/${definitionName}`;
  const ask = async (type: string, path: string, apiVersion: string) => {
    const found = await arm.get<ShownResource>(path, { "api-version": apiVersion }, { name: "" });
    return found === undefined
      ? []
      : [[shownAs(`azure-native:${type}`, found.name), found] as const];
  };
  const groups = await ask("resources:ResourceGroup", group, "2024-03-01");
  // Without one there is nothing to ask for, and perhaps no provider that is registered.
  if (groups.length === 0) return new Map();
  const others = await Promise.all([
    ask("compute:Gallery", gallery, "2024-03-03"),
    ask("compute:GalleryImage", definition, "2024-03-03"),
    ask("compute:GalleryImageVersion", `${definition}/versions/${version}`, "2024-03-03"),
  ]);
  return new Map([...groups, ...others.flat()]);
}
