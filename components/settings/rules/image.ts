import { parseGalleryImage } from "../gallery-image-id";
import { isInOwnGroup } from "../own-group";
import { Problem, wants } from "../problem";
import type { Settings } from "../settings";

const example =
  "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/images/providers/Microsoft.Compute/galleries/zoned/images/node/versions/1.0.0";

/** What is wrong with the id of a gallery image version. */
export function galleryImageProblems(settings: Settings): Problem[] {
  const { clusterName, image } = settings;
  if (image === "") return [];
  const place = parseGalleryImage(image);
  const problem = (expected: string) => wants("image", image, expected, example);
  if (place === undefined) {
    return [
      problem(
        "Azure's id of one version of a gallery image, as npm run image prints it; latest would differ from machine to machine",
      ),
    ];
  }
  return isInOwnGroup(settings, place.resourceGroup)
    ? [
        problem(
          `an image in another resource group than ${clusterName}, which pulumi destroy deletes with all that is in it`,
        ),
      ]
    : [];
}
