import { randomUUID } from "node:crypto";

import {
  AzureError,
  invalidParameter,
  operationNotAllowed,
  propertyChangeNotAllowed,
} from "../../azure-error";
import { keyOf } from "../../resources/ids";
import { Body, Resource, View } from "../../resources/resource";
import { hasDisks, isInEveryZone } from "../../subscription/offers";
import { ResourceType, Right } from "../resource-type";
import { encryptionBy, referenceToSet, rightToSet } from "./disk-encryption-set";
import { powerOf } from "./power";

export type DiskBody = {
  location: string;
  sku?: { name?: string; tier?: string };
  zones?: string[];
  creationData: { createOption?: string; sourceResourceId?: string };
  diskSizeGB?: number;
  encryption?: { diskEncryptionSetId?: string; type?: string };
  diskState?: string;
  managedBy?: string;
  timeCreated?: string;
  uniqueId?: string;
};

export const diskType = "Microsoft.Compute/disks";

export const disk: ResourceType<DiskBody> = {
  token: "azure-native:compute:Disk",
  type: diskType,
  required: ["creationData.createOption"],
  patches: "inputs",
  zones: { most: 1 },
  name: /^[A-Za-z0-9_.-]{1,80}$/,
  linkedRights: rightsToDisks,

  references: ({ encryption }, id) => referenceToSet(id, encryption?.diskEncryptionSetId),

  accept({ body, old, now }, view) {
    const { sku: { name: skuName = "Standard_LRS" } = {} } = body;
    if (!hasDisks(skuName, body.location)) {
      throw invalidParameter(`SKU ${skuName} is not available.`, "sku");
    }
    if (isInEveryZone(skuName) && body.zones?.length) {
      throw operationNotAllowed(
        `A disk with sku '${skuName}' cannot be created in an availability zone.`,
      );
    }
    const encryption = encryptionBy(body.encryption, view);
    if (old) checkEncryptionChange(encryption, old, view);
    const source = sourceOf(body.creationData, old === undefined, view);
    const size = body.diskSizeGB ?? old?.body.diskSizeGB ?? source?.diskSizeGB;
    if (body.creationData.createOption === "Empty" && !size) {
      throw invalidParameter(
        "Required parameter 'disk.diskSizeGB' is missing (null).",
        "disk.diskSizeGB",
      );
    }
    if (old) {
      if (String(old.body.zones ?? []) !== String(body.zones ?? []))
        throw propertyChangeNotAllowed("zones");
      if (old.body.creationData.createOption !== body.creationData.createOption) {
        throw propertyChangeNotAllowed("creationData.createOption");
      }
      if (old.body.creationData.sourceResourceId !== body.creationData.sourceResourceId) {
        throw propertyChangeNotAllowed("creationData.sourceResourceId");
      }
      if ((size ?? 0) < (old.body.diskSizeGB ?? 0)) {
        throw operationNotAllowed(
          `Disk size can only be increased. Current size ${old.body.diskSizeGB} GB, requested ${size} GB.`,
        );
      }
    }
    const filled: Body = {
      networkAccessPolicy: "AllowAll",
      publicNetworkAccess: "Enabled",
      ...body,
      sku: {
        tier: skuName.split("_")[0],
        ...body.sku,
        name: skuName,
      },
      encryption: encryption ?? old?.body.encryption ?? withPlatformKey,
      diskSizeGB: size,
      diskSizeBytes: (size ?? 0) * 1024 ** 3,
      timeCreated: old?.body.timeCreated ?? now.toISOString(),
      uniqueId: old?.body.uniqueId ?? randomUUID(),
      diskState: old?.body.diskState ?? "Unattached",
      managedBy: old?.body.managedBy,
    };
    return { body: filled as DiskBody };
  },

  mayDelete({ id, body }) {
    if (body.managedBy === undefined) return;
    throw operationNotAllowed(`Disk ${id.split("/").at(-1)} is attached to VM ${body.managedBy}.`);
  },
};

export const withPlatformKey = { type: "EncryptionAtRestWithPlatformKey" };

/** Another set is for a disk that no running machine has. */
function checkEncryptionChange(
  wanted: DiskBody["encryption"],
  { id, body: { encryption, managedBy } }: Resource<DiskBody>,
  view: View,
): void {
  const before = encryption?.diskEncryptionSetId;
  const next = wanted?.diskEncryptionSetId;
  if (wanted === undefined || keyOf(next ?? "") === keyOf(before ?? "")) return;
  const machine = managedBy === undefined ? undefined : view.find(managedBy);
  if (machine === undefined || powerOf(machine) === "deallocated") return;
  throw operationNotAllowed(
    `Disk ${id.split("/").at(-1)} is attached to VM ${managedBy}; its encryption can be changed only while that is deallocated.`,
  );
}

/**
 * To copy a disk or a snapshot is to read it, which Azure calls the same for both (Azure/OpenShift
 * #186, kubernetes #93020).
 */
export function rightsToDisks({
  creationData,
  encryption,
}: Pick<DiskBody, "creationData" | "encryption">): Right[] {
  const right = (action: string, scope: string | undefined): Right[] =>
    scope === undefined ? [] : [{ action: `Microsoft.Compute/${action}`, scope }];
  return [
    ...right("disks/beginGetAccess/action", creationData.sourceResourceId),
    ...rightToSet(encryption?.diskEncryptionSetId),
  ];
}

/** What a new disk or snapshot is copied from. Once it is made, its source may go. */
export function sourceOf(
  { sourceResourceId: id }: { readonly sourceResourceId?: string },
  isNew: boolean,
  view: View,
): Pick<DiskBody, "diskSizeGB" | "encryption"> | undefined {
  const source = id === undefined ? undefined : view.find(id);
  if (id === undefined || source !== undefined || !isNew) return source?.body;
  throw new AzureError(404, "NotFound", `Resource ${id} is not found.`);
}

export function attach(disk: Resource, machine: string): void {
  disk.body = { ...disk.body, managedBy: machine, diskState: "Attached" };
}

export function detach(disk: Resource): void {
  const { managedBy: _, ...body } = disk.body;
  disk.body = { ...body, diskState: "Unattached" };
}
