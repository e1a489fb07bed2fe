import { StorageClass } from "@pulumi/kubernetes/storage/v1";
import * as pulumi from "@pulumi/pulumi";

import type { Settings } from "../../plan/settings/settings";
import { driverName } from "./disk-driver";

export interface StorageClassesArgs {
  readonly settings: Pick<Settings, "location" | "zones">;
}

/** A StorageClass of this cluster, before it is one. */
interface DiskClass {
  readonly name: string;
  readonly skuName: string;
  /** Where alone it makes disks. */
  readonly zone?: string;
  readonly isDefault: boolean;
}

/** Disks that live in one zone, with their machine's, and disks that are kept in all of them. */
const kinds = [
  // Every size of machine takes this one, which is why it is the default.
  { name: "standard-ssd", skuName: "StandardSSD_LRS", zonal: true, isDefault: true },
  { name: "premium-ssd", skuName: "Premium_LRS", zonal: true, isDefault: false },
  { name: "standard-ssd-zrs", skuName: "StandardSSD_ZRS", zonal: false, isDefault: false },
  { name: "premium-ssd-zrs", skuName: "Premium_ZRS", zonal: false, isDefault: false },
];

/** Per zonal kind of disk, a class for wherever the pod goes and one for each zone. */
const diskClasses = (zones: readonly string[]): DiskClass[] =>
  kinds.flatMap(({ name, skuName, zonal, isDefault }) => [
    { name, skuName, isDefault },
    ...(zonal ? zones : []).map((zone) => ({
      name: `${name}-zone-${zone}`,
      skuName,
      zone,
      isDefault: false,
    })),
  ]);

/**
 * Classes of disks. A disk is made only once a pod wants it, where that pod can run: made earlier,
 * it could lie in a zone that has no room for the pod.
 */
export class StorageClasses extends pulumi.ComponentResource {
  constructor(name: string, args: StorageClassesArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:StorageClasses", name, {}, opts);
    const { settings } = args;
    const child = { parent: this, dependsOn: opts?.dependsOn };

    for (const { name: className, skuName, zone, isDefault } of diskClasses(settings.zones)) {
      new StorageClass(
        `${name}-${className}`,
        {
          metadata: {
            name: className,
            annotations: { "storageclass.kubernetes.io/is-default-class": String(isDefault) },
          },
          provisioner: driverName,
          parameters: { skuName },
          reclaimPolicy: "Delete",
          allowVolumeExpansion: true,
          volumeBindingMode: "WaitForFirstConsumer",
          ...(zone !== undefined && {
            allowedTopologies: [
              {
                matchLabelExpressions: [
                  { key: `topology.${driverName}/zone`, values: [`${settings.location}-${zone}`] },
                ],
              },
            ],
          }),
        },
        child,
      );
    }
    this.registerOutputs();
  }
}
