import { isDeepStrictEqual } from "node:util";

import {
  AzureError,
  conflict,
  invalidParameter,
  propertyChangeNotAllowed,
} from "../../azure-error";
import { parseId, type Resource, type View } from "../../resources/resource";
import { findImage, type ImageReference } from "../../subscription/offers";
import { normalLocation } from "../../subscription/regions";
import type { ResourceType, Right } from "../resource-type";

export const galleryType = "Microsoft.Compute/galleries";
const definitionType = `${galleryType}/images`;
export const versionType = `${definitionType}/versions`;

interface TargetRegion {
  readonly name: string;
  readonly regionalReplicaCount?: number;
  readonly storageAccountType?: string;
}

export type VersionBody = {
  location: string;
  publishingProfile?: {
    targetRegions?: readonly TargetRegion[];
    excludeFromLatest?: boolean;
    storageAccountType?: string;
    replicaCount?: number;
    publishedDate?: string;
  };
  storageProfile?: {
    source?: { id?: string; virtualMachineId?: string };
    /** As Azure shows it. */
    osDiskImage?: { hostCaching: string; sizeInGB: number };
  };
  safetyProfile?: object;
  provisioningState?: string;
};

/** Whether machines can be made there of a gallery image version. */
const isReplicatedTo = (location: string, { body }: Resource): boolean =>
  (body as VersionBody).publishingProfile!.targetRegions!.some(
    ({ name }) => normalLocation(name) === location,
  );

/** What Azure says of a gallery with definitions, and of a definition with versions. */
function checkEmpty({ id }: Resource, nested: string, view: View): void {
  if (view.children(id, nested).length === 0) return;
  throw conflict(
    "CannotDeleteResource",
    `Can not delete resource before nested resources are deleted. Resource: ${id}.`,
  );
}

export const gallery: ResourceType = {
  token: "azure-native:compute:Gallery",
  type: galleryType,
  patches: "inputs",
  name: /^[A-Za-z0-9]([A-Za-z0-9._]{0,78}[A-Za-z0-9])?$/,

  accept: ({ id, body }) => ({
    body: {
      ...body,
      identifier: { uniqueName: `${id.subscription}-${id.name.toUpperCase()}` },
    },
  }),

  mayDelete: (resource, view) => checkEmpty(resource, definitionType, view),
};

export type DefinitionBody = {
  location: string;
  osType?: string;
  osState?: string;
  hyperVGeneration?: string;
  architecture?: string;
  identifier?: { publisher?: string; offer?: string; sku?: string };
  features?: readonly { readonly name?: string; readonly value?: string }[];
};

const fixed = [
  "osType",
  "osState",
  "hyperVGeneration",
  "architecture",
  "identifier",
  "features",
] as const satisfies readonly (keyof DefinitionBody)[];

/** What a definition says of its images; left out, they are for machines of the standard type, with SCSI. */
export const featureOf = (
  { features = [] }: DefinitionBody,
  feature: "SecurityType" | "DiskControllerTypes",
): string | undefined => features.find(({ name }) => name === feature)?.value;

const securityTypes = [
  "None",
  "TrustedLaunch",
  "TrustedLaunchSupported",
  "ConfidentialVM",
  "ConfidentialVMSupported",
  "TrustedLaunchAndConfidentialVmSupported",
];

/** A definition of images: what they are for, and no image yet. */
export const galleryImage: ResourceType<DefinitionBody> = {
  token: "azure-native:compute:GalleryImage",
  type: definitionType,
  required: ["identifier.publisher", "identifier.offer", "identifier.sku"],
  patches: "inputs",
  name: /^[A-Za-z0-9]([A-Za-z0-9._-]{0,78}[A-Za-z0-9])?$/,

  accept({ id, body, old }, view) {
    const filled = { hyperVGeneration: "V1", architecture: "x64", ...body };
    const securityType = featureOf(filled, "SecurityType") ?? "None";
    if (!securityTypes.includes(securityType)) {
      throw invalidParameter(
        `The value '${securityType}' for feature 'SecurityType' is invalid.`,
        "galleryImage.properties.features",
      );
    }
    if (securityType !== "None" && filled.hyperVGeneration !== "V2") {
      throw invalidParameter(
        `The feature 'SecurityType' of value '${securityType}' is supported only for images of Hyper-V generation 'V2'.`,
        "galleryImage.properties.features",
      );
    }
    const changed = fixed.find(
      (property) => old !== undefined && !isDeepStrictEqual(filled[property], old.body[property]),
    );
    if (changed !== undefined) throw propertyChangeNotAllowed(`galleryImage.properties.${changed}`);
    const identifierOf = ({ identifier: { publisher, offer, sku } = {} }: DefinitionBody) =>
      [publisher, offer, sku].join("/").toLowerCase();
    const twin = view
      .children(id.parent, definitionType)
      .find(
        (one) =>
          one.id !== old?.id && identifierOf(one.body as DefinitionBody) === identifierOf(filled),
      );
    if (twin !== undefined) {
      throw conflict(
        "Conflict",
        `A gallery image with the identifier ${identifierOf(filled)} already exists in the gallery: ${twin.id}.`,
      );
    }
    return { body: filled };
  },

  mayDelete: (resource, view) => checkEmpty(resource, versionType, view),
};

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
    ? view.children(id, versionType).filter(isLatest).toSorted(byVersion)
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

const isLatest = ({ body }: Resource): boolean =>
  (body as VersionBody).publishingProfile?.excludeFromLatest !== true;

const byVersion = (a: Resource, b: Resource): number =>
  a.id.localeCompare(b.id, "en", { numeric: true });

/** What whoever makes a machine of it has to have. */
export const rightToImage = ({ id }: ImageReference = {}): Right[] =>
  id === undefined ? [] : [{ action: `${versionType}/read`, scope: id }];
