import { randomUUID } from "node:crypto";

import { propertyChangeNotAllowed } from "../../azure-error";
import { View } from "../../resources/resource";
import { Accepted, Put, ResourceType } from "../resource-type";
import { rightsToDisks, sourceOf } from "./disk";

type SnapshotBody = {
  location: string;
  sku?: { name?: string; tier?: string };
  creationData: { createOption?: string; sourceResourceId?: string };
  diskSizeGB?: number;
  encryption?: { diskEncryptionSetId?: string };
  timeCreated?: string;
  uniqueId?: string;
};

export const snapshot: ResourceType<SnapshotBody> = {
  token: "azure-native:compute:Snapshot",
  type: "Microsoft.Compute/snapshots",
  apiVersion: "2024-03-02",
  path: "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.Compute/snapshots/{snapshotName}",
  inputs: [
    "creationData",
    "dataAccessAuthMode",
    "diskSizeGB",
    "encryption",
    "extendedLocation",
    "hyperVGeneration",
    "incremental",
    "location",
    "networkAccessPolicy",
    "osType",
    "publicNetworkAccess",
    "sku",
    "tags",
  ],
  required: ["creationData", "creationData.createOption"],
  patches: "inputs",
  name: /^[A-Za-z0-9_.-]{1,80}$/,
  linkedRights: rightsToDisks,

  accept({ body, old, now }: Put<SnapshotBody>, view: View): Accepted<SnapshotBody> {
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
