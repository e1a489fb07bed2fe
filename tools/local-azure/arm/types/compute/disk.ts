import { randomUUID } from "node:crypto";

import {
  AzureError,
  badRequest,
  invalidParameter,
  missingResource,
  operationNotAllowed,
  propertyChangeNotAllowed,
} from "../../azure-error";
import { account, Body, keyOf, type Reference, Resource, View } from "../../resources/resource";
import { hasDisks, isInEveryZone } from "../../subscription/offers";
import { ResourceType, Right } from "../resource-type";
import { powerOf } from "./power";

export type DiskEncryptionSetBody = {
  location: string;
  identity?: { type?: string; principalId?: string; tenantId?: string };
  activeKey?: { keyUrl?: string; sourceVault?: { id?: string } };
  encryptionType?: string;
  rotationToLatestKeyVersionEnabled?: boolean;
};

export const setType = "Microsoft.Compute/diskEncryptionSets";

const customerKey = "EncryptionAtRestWithCustomerKey";
const confidential = "ConfidentialVmEncryptedWithCustomerKey";

/** A set whose key is taken on trust: there are no vaults here. */
export const diskEncryptionSet: ResourceType<DiskEncryptionSetBody> = {
  token: "azure-native:compute:DiskEncryptionSet",
  type: setType,
  required: ["activeKey.keyUrl", "identity.type"],
  patches: "inputs",
  readOnly: ["identity.principalId", "identity.tenantId"],
  name: /^[A-Za-z0-9_-]{1,80}$/,

  accept({ body, old }) {
    const { encryptionType = old?.body.encryptionType ?? customerKey, identity } = body;
    const hasOwn = identity?.type?.includes("SystemAssigned") === true;
    return {
      body: {
        rotationToLatestKeyVersionEnabled: false,
        ...body,
        encryptionType,
        identity: {
          ...identity,
          ...(hasOwn && {
            principalId: old?.body.identity?.principalId ?? randomUUID(),
            tenantId: account.tenantId,
          }),
        },
      },
    };
  },

  inUse: (id, [first]) =>
    operationNotAllowed(`Disk encryption set ${id.split("/").at(-1)} is used by ${first!.owner}.`),
};

/** What a disk, a snapshot or a machine refers to by naming a set, which is in its region. */
export const referenceToSet = (from: string, set: string | undefined): Reference[] =>
  set === undefined
    ? []
    : [
        {
          ...{ from, owner: from, to: set },
          missing: missingResource(set),
        },
      ];

/** What whoever names a set has to have: azuredisk-csi-driver #2609, of machines openshift-docs #52550. */
export const rightToSet = (set: string | undefined): Right[] =>
  set === undefined ? [] : [{ action: `${setType}/read`, scope: set }];

/** The encryption of a disk that names a set, whose type is the set's. */
export function encryptionBy(
  wanted: { readonly diskEncryptionSetId?: string; readonly type?: string } | undefined,
  view: View,
): { readonly diskEncryptionSetId?: string; readonly type: string } | undefined {
  const { diskEncryptionSetId: id, type } = wanted ?? {};
  const set = id === undefined ? undefined : view.find(id);
  if (set === undefined) return type === undefined ? undefined : { ...wanted, type };
  const { encryptionType = customerKey } = set.body as DiskEncryptionSetBody;
  if (encryptionType === confidential) {
    throw badRequest(`Disk encryption set ${id} is for confidential virtual machines.`);
  }
  if (type !== undefined && type !== encryptionType) {
    throw invalidParameter(
      `The encryption type ${type} is not that of the disk encryption set ${id}, ${encryptionType}.`,
      "encryption.type",
    );
  }
  return { diskEncryptionSetId: id, type: encryptionType };
}

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
    if (!old && (size ?? 0) < (source?.diskSizeGB ?? 0)) {
      throw operationNotAllowed(
        `The specified disk size ${size} GB is smaller than the size of the corresponding source: ${source?.diskSizeGB} GB. ` +
          "This is not allowed. Please choose equal or greater size or do not specify an explicit size.",
        "disk.diskSizeGB",
      );
    }
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

  inUse: (id, [user]) => attached(id, user!.owner),

  // No machine's body refers to the disk of its system.
  mayDelete({ id, body: { managedBy } }) {
    if (managedBy !== undefined) throw attached(id, managedBy);
  },
};

const attached = (id: string, machine: string): AzureError =>
  operationNotAllowed(`Disk ${id.split("/").at(-1)} is attached to VM ${machine}.`);

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
function rightsToDisks({
  creationData,
  encryption,
}: Partial<Pick<DiskBody, "creationData" | "encryption">>): Right[] {
  const right = (action: string, scope: string | undefined): Right[] =>
    scope === undefined ? [] : [{ action: `Microsoft.Compute/${action}`, scope }];
  return [
    ...right("disks/beginGetAccess/action", creationData?.sourceResourceId),
    ...rightToSet(encryption?.diskEncryptionSetId),
  ];
}

/** What a new disk or snapshot is copied from. Once it is made, its source may go. */
function sourceOf(
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

type SnapshotBody = {
  location: string;
  sku?: { name?: string; tier?: string };
  creationData: { createOption?: string; sourceResourceId?: string };
  diskSizeGB?: number;
  encryption?: { diskEncryptionSetId?: string; type?: string };
  timeCreated?: string;
  uniqueId?: string;
};

export const snapshot: ResourceType<SnapshotBody> = {
  token: "azure-native:compute:Snapshot",
  type: "Microsoft.Compute/snapshots",
  required: ["creationData.createOption"],
  patches: "inputs",
  name: /^[A-Za-z0-9_.-]{1,80}$/,
  linkedRights: rightsToDisks,

  references: ({ encryption }, id) => referenceToSet(id, encryption?.diskEncryptionSetId),

  accept({ body, old, now }, view) {
    const { sourceResourceId } = body.creationData;
    if (old && old.body.creationData.sourceResourceId !== sourceResourceId) {
      throw propertyChangeNotAllowed("creationData.sourceResourceId");
    }
    const source = sourceOf(body.creationData, old === undefined, view);
    const size = old?.body.diskSizeGB ?? source?.diskSizeGB;
    const filled = {
      incremental: false,
      networkAccessPolicy: "AllowAll",
      publicNetworkAccess: "Enabled",
      ...body,
      sku: { tier: "Standard", ...body.sku, name: body.sku?.name ?? "Standard_LRS" },
      // A snapshot has the encryption of its disk.
      encryption: encryptionBy(body.encryption, view) ?? old?.body.encryption ?? source?.encryption,
      diskSizeGB: size,
      diskSizeBytes: (size ?? 0) * 1024 ** 3,
      completionPercent: 100,
      diskState: "Unattached",
      timeCreated: old?.body.timeCreated ?? now.toISOString(),
      uniqueId: old?.body.uniqueId ?? randomUUID(),
    };
    return { body: filled };
  },
};
