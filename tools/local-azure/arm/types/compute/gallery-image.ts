import { isDeepStrictEqual } from "node:util";

import { conflict, invalidParameter, propertyChangeNotAllowed } from "../../azure-error";
import type { ResourceType } from "../resource-type";
import { checkEmpty, definitionType, versionType } from "./gallery";

export type DefinitionBody = {
  location: string;
  osType?: string;
  osState?: string;
  hyperVGeneration?: string;
  architecture?: string;
  identifier?: { publisher?: string; offer?: string; sku?: string };
  features?: readonly { readonly name?: string; readonly value?: string }[];
};

/** A value that Azure knows, or its own where none is given. */
const choices = {
  osType: ["Linux", "Windows"],
  osState: ["Generalized", "Specialized"],
  hyperVGeneration: ["V1", "V2"],
  architecture: ["x64", "Arm64"],
} as const;

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
    for (const [property, known] of Object.entries(choices)) {
      const value = filled[property as keyof typeof choices]!;
      if (!(known as readonly string[]).includes(value)) {
        throw invalidParameter(
          `The value '${value}' of parameter 'galleryImage.properties.${property}' is not one of ${known.join(", ")}.`,
          `galleryImage.properties.${property}`,
        );
      }
    }
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
    const fixed = [...Object.keys(choices), "identifier", "features"] as (keyof DefinitionBody)[];
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
