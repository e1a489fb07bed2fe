import { isDeepStrictEqual } from "node:util";

import {
  AzureError,
  badRequest,
  conflict,
  invalidParameter,
  missingParameter,
  missingResource,
  propertyChangeNotAllowed,
} from "../../azure-error";
import { keyOf, parseId, type Resource, type View } from "../../resources/resource";
import { checkedLocation, displayName, normalLocation } from "../../subscription/regions";
import type { ResourceType } from "../resource-type";
import {
  type DefinitionBody,
  featureOf,
  marketplaceGb,
  type VersionBody,
  versionType,
} from "./gallery";
import { isGeneralized } from "./power";
import { isMachine, machineOf } from "./virtual-machine";
import type { MachineBody } from "./virtual-machine-validation";

/** An image, which never changes; only where there are copies of it does. */
export const galleryImageVersion: ResourceType<VersionBody> = {
  token: "azure-native:compute:GalleryImageVersion",
  type: versionType,
  readOnly: ["publishingProfile.publishedDate", "storageProfile.osDiskImage"],
  patches: "inputs",
  name: /^(0|[1-9]\d{0,9})\.(0|[1-9]\d{0,9})\.(0|[1-9]\d{0,9})$/,

  accept({ id, body, old, now }, view) {
    const { name } = id;
    if (name.split(".").some((number) => Number(number) > 2 ** 31 - 1)) {
      throw invalidParameter(
        `The value '${name}' of parameter 'galleryImageVersionName' is invalid: each number is at most ${2 ** 31 - 1}.`,
        "galleryImageVersionName",
      );
    }
    if (old) checkUnchanged(body, old.body);
    else checkSource(body, view.find(id.parent)!.body as DefinitionBody, view);
    return {
      body: {
        ...body,
        storageProfile: {
          ...body.storageProfile,
          osDiskImage: old?.body.storageProfile?.osDiskImage ?? {
            hostCaching: "ReadWrite",
            sizeInGB: sizeOf(view.find(sourceOf(body)!)),
          },
        },
        publishingProfile: {
          replicaCount: 1,
          excludeFromLatest: false,
          storageAccountType: "Standard_LRS",
          ...body.publishingProfile,
          targetRegions: regionsOf(body),
          publishedDate: old?.body.publishingProfile?.publishedDate ?? now.toISOString(),
        },
      },
      hidden: old?.hidden,
    };
  },

  /** The machine that it is made of may be deleted once it is there. */
  async run({ resource, old, ledger, machines }) {
    const source = ledger.find(sourceOf(resource.body) ?? "");
    const isMade = old !== undefined && old.body.provisioningState !== "Failed";
    if (isMade || source === undefined || !isMachine(source)) return;
    await machines.capture(machineOf(source, ledger), resource.id);
  },

  interrupted: ({ body }) => void (body.provisioningState = "Failed"),
};

const sourceOf = ({ storageProfile: { source } = {} }: VersionBody): string | undefined =>
  source?.virtualMachineId ?? source?.id;

const sizeOf = (source: Resource | undefined): number =>
  (source?.body as MachineBody | undefined)?.storageProfile?.osDisk?.diskSizeGB ?? marketplaceGb;

/** Regions with a copy, by their names for people, as Azure shows them. */
function regionsOf({ location, publishingProfile: { targetRegions } = {} }: VersionBody) {
  const wanted = targetRegions ?? [{ name: location }];
  const names = wanted.map(({ name }) => checkedLocation(normalLocation(name), versionType));
  if (new Set(names).size < names.length) {
    throw invalidParameter(
      `Duplicate target regions are not allowed: ${names.join(", ")}.`,
      "galleryImageVersion.properties.publishingProfile.targetRegions",
    );
  }
  if (!names.includes(location)) {
    throw invalidParameter(
      `The target regions must contain the region of the gallery image version, '${location}'.`,
      "galleryImageVersion.properties.publishingProfile.targetRegions",
    );
  }
  return wanted.map((region) => {
    const { storageAccountType = "Standard_LRS", regionalReplicaCount = 1 } = region;
    const name = displayName(normalLocation(region.name));
    return { ...region, name, storageAccountType, regionalReplicaCount };
  });
}

function checkUnchanged(body: VersionBody, old: VersionBody): void {
  const path = "galleryImageVersion.properties";
  if (keyOf(sourceOf(body) ?? "") !== keyOf(sourceOf(old) ?? "")) {
    throw propertyChangeNotAllowed(`${path}.storageProfile.source.virtualMachineId`);
  }
  const type = body.publishingProfile?.storageAccountType;
  const before = old.publishingProfile?.storageAccountType;
  if (type !== undefined && !isDeepStrictEqual(type, before)) {
    throw propertyChangeNotAllowed(`${path}.publishingProfile.storageAccountType`);
  }
}

/**
 * What an image is made of: here a machine only. The refusals are those of Azure/azure-cli #24972 and
 * hashicorp/packer-plugin-azure #304.
 */
function checkSource(body: VersionBody, definition: DefinitionBody, view: View): void {
  const target = "galleryImageVersion.properties.storageProfile.source.virtualMachineId";
  const id = sourceOf(body);
  if (id === undefined) {
    throw missingParameter(target);
  }
  const source = view.find(id);
  if (source === undefined) throw missingResource(id);
  if (!isMachine(source)) {
    throw new AzureError(
      404,
      "InvalidResourceType",
      `The local Azure makes gallery images of virtual machines only, and not of ${parseId(id)?.type}.`,
    );
  }
  if (source.body.location !== body.location) {
    throw invalidParameter(
      `The source '${id}' is in '${source.body.location}', and the gallery image version in '${body.location}': they must be in the same region.`,
      target,
    );
  }
  const state = isGeneralized(source) ? "Generalized" : "Specialized";
  if (state !== definition.osState) {
    throw badRequest(
      `The resource with id '${id}' has a different OS state ['${state}'] than the parent gallery image OS state ['${definition.osState}'].`,
    );
  }
  checkSecurity(featureOf(definition, "SecurityType") ?? "None", source, target);
}

function checkSecurity(wanted: string, { id, body }: Resource<MachineBody>, target: string): void {
  if (wanted.endsWith("Supported")) {
    throw invalidParameter(
      `The security type '${wanted}' is not supported for the source id '${id}'. ` +
        `Currently only Vhd Blob, User Image and Gallery Image Version sources are supported for '${wanted}' images.`,
      target,
    );
  }
  const { securityType = "None" } = body.securityProfile ?? {};
  if (wanted === securityType) return;
  throw conflict(
    "Conflict",
    `The security type '${securityType}' of the source '${id}' does not match that of the gallery image, '${wanted}'.`,
    target,
  );
}
