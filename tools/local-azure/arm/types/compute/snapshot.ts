import { randomUUID } from "node:crypto";

import { propertyChangeNotAllowed } from "../../azure-error";
import { ResourceType } from "../resource-type";
import { rightsToDisks, sourceOf } from "./disk";
import { encryptionBy, referenceToSet } from "./disk-encryption-set";

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
