import { parseGalleryImage } from "../gallery-image-id";
import type { Problem } from "../problem";
import type { Settings } from "../settings";
import { idOfOthersProblems } from "./id-of-others";

/** What is wrong with the id of a gallery image version. */
export const galleryImageProblems = (settings: Settings): Problem[] =>
  settings.image === ""
    ? []
    : idOfOthersProblems(settings, {
        key: "image",
        id: settings.image,
        place: parseGalleryImage(settings.image),
        expected:
          "Azure's id of one version of a gallery image, as npm run image prints it; latest would differ from machine to machine",
        what: "an image",
        example:
          "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/images/providers/Microsoft.Compute/galleries/zoned/images/node/versions/1.0.0",
      });
