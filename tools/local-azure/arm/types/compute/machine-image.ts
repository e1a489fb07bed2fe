import { AzureError } from "../../azure-error";
import { parseId } from "../../resources/ids";
import type { Resource, View } from "../../resources/resource";
import { findImage, type ImageReference } from "../../subscription/images";
import type { Right } from "../resource-type";
import { definitionType, isReplicatedTo, type VersionBody, versionType } from "./gallery";
import { type DefinitionBody, featureOf } from "./gallery-image";

/** The size of Ubuntu's images. */
export const marketplaceGb = 30;

/** What a machine's image says of the machines that are made of it. */
export interface MachineImage {
  readonly generation: "V1" | "V2";
  readonly architecture: "x64" | "Arm64";
  readonly exactVersion: string;
  /** @default SCSI and NVMe */
  readonly diskControllers?: string;
  /** Of gallery images: the feature of their definition. */
  readonly securityType?: string;
  /** @default that of Ubuntu's */
  readonly sizeGb?: number;
}

/** An image of the marketplace, or of a gallery. A machine that is there needs it no more. */
export function imageOf(
  reference: ImageReference,
  location: string,
  view: View,
  old?: Resource,
): MachineImage {
  const before = old?.hidden["image"] as MachineImage | undefined;
  if (before !== undefined) return before;
  return reference.id === undefined
    ? findImage(reference)
    : galleryImageOf(reference.id, location, view);
}

/** The id of a definition stands for its latest version. */
function galleryImageOf(id: string, location: string, view: View): MachineImage {
  const parsed = parseId(id);
  const isDefinition = parsed?.type.toLowerCase() === definitionType.toLowerCase();
  const candidates = isDefinition
    ? view.children(id, versionType).toSorted(byVersion)
    : [view.find(id)].filter((one) => one?.type === versionType);
  const version = candidates.findLast(
    (one) =>
      one !== undefined &&
      one.body["provisioningState"] === "Succeeded" &&
      isReplicatedTo(location, one),
  );
  if (version === undefined) {
    throw new AzureError(
      404,
      "GalleryImageNotFound",
      `The gallery image ${id} is not available in ${location} region. Please contact image owner to replicate to this region, or change your requested region.`,
      "imageReference",
    );
  }
  const { name, parent } = parseId(version.id)!;
  const definition = view.find(parent)!.body as DefinitionBody;
  return {
    generation: definition.hyperVGeneration as MachineImage["generation"],
    architecture: definition.architecture as MachineImage["architecture"],
    exactVersion: name,
    diskControllers: featureOf(definition, "DiskControllerTypes") ?? "SCSI",
    securityType: featureOf(definition, "SecurityType") ?? "None",
    sizeGb: (version.body as VersionBody).storageProfile?.osDiskImage?.sizeInGB,
  };
}

const byVersion = (a: Resource, b: Resource): number =>
  a.id.localeCompare(b.id, "en", { numeric: true });

/** What whoever makes a machine of it has to have. */
export const rightToImage = ({ id }: ImageReference = {}): Right[] =>
  id === undefined ? [] : [{ action: `${versionType}/read`, scope: id }];
