import { conflict } from "../../azure-error";
import type { Resource, View } from "../../resources/resource";
import { normalLocation } from "../../subscription/regions";
import type { ResourceType } from "../resource-type";

export const galleryType = "Microsoft.Compute/galleries";
export const definitionType = `${galleryType}/images`;
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
export const isReplicatedTo = (location: string, { body }: Resource): boolean =>
  (body as VersionBody).publishingProfile!.targetRegions!.some(
    ({ name }) => normalLocation(name) === location,
  );

/** What Azure says of a gallery with definitions, and of a definition with versions. */
export function checkEmpty({ id }: Resource, nested: string, view: View): void {
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
