import { StorageClass } from "@pulumi/kubernetes/storage/v1";
import * as pulumi from "@pulumi/pulumi";

import type { DiskClass, DiskEncryptionSet } from "../../azure/disk-classes";
import type { Settings } from "../../settings/settings";
import { zoneLabelOf } from "../../settings/topology";
import { driverName, tagParameters } from "./disk-driver";

export interface StorageClassesArgs {
  readonly settings: Pick<Settings, "location" | "resourceGroup" | "tags">;
  readonly diskClasses: readonly DiskClass[];
  readonly diskEncryptionSet?: DiskEncryptionSet;
}

/**
 * Classes of disks. A disk is made only once a pod wants it, where that pod can run: made earlier,
 * it could lie in a zone that has no room for the pod.
 */
export class StorageClasses extends pulumi.ComponentResource {
  constructor(name: string, args: StorageClassesArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:StorageClasses", name, {}, opts);
    const { settings, diskClasses, diskEncryptionSet } = args;
    const child = { parent: this, dependsOn: opts?.dependsOn };

    for (const { name: className, skuName, zone, isDefault } of diskClasses) {
      new StorageClass(
        `${name}-${className}`,
        {
          metadata: {
            name: className,
            annotations: { "storageclass.kubernetes.io/is-default-class": String(isDefault) },
          },
          provisioner: driverName,
          parameters: {
            skuName,
            ...tagParameters(settings),
            // The driver assumes a customer's key alone, and Azure wants the type that the set has.
            ...(diskEncryptionSet && {
              diskEncryptionSetID: diskEncryptionSet.id,
              diskEncryptionType: diskEncryptionSet.encryptionType,
            }),
          },
          reclaimPolicy: "Delete",
          allowVolumeExpansion: true,
          volumeBindingMode: "WaitForFirstConsumer",
          ...(zone !== undefined && {
            allowedTopologies: [
              {
                matchLabelExpressions: [
                  { key: `topology.${driverName}/zone`, values: [zoneLabelOf(settings, zone)] },
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
