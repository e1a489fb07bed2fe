import * as compute from "@pulumi/azure-native/compute";
import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import type { AzureConnection } from "../azure/resource-manager";
import { contentTags } from "../azure/image-offers";
import { groupId } from "../azure/resource-names";
import { type Shown, shownAs, type ShownResource } from "../azure/shown";
import { ownTag } from "../azure/stack-tag";
import type { ClusterGroup } from "../cluster-group";
import type { Settings } from "../settings/settings";
import { type Builder, builderName } from "./builder";

/** The cluster's own group would take the image along. */
export const imageGroupName = ({ clusterName }: Pick<Settings, "clusterName">): string =>
  `${clusterName}-gallery`;

/** Azure takes no hyphens here. In a group of others each cluster has its own. */
export const galleryName = ({ clusterName }: Pick<Settings, "clusterName">): string =>
  clusterName.replaceAll("-", "_");

export const definitionName = "node";

/** The resource group of gallery and builder, or the one that the settings name. */
export function imageGroup(settings: Settings, subscriptionId: string): ClusterGroup {
  if (settings.resourceGroup !== "") {
    return {
      name: pulumi.output(settings.resourceGroup),
      id: pulumi.output(groupId(settings, subscriptionId)),
    };
  }
  const own = new ResourceGroup("images", {
    resourceGroupName: imageGroupName(settings),
    location: settings.location,
    tags: ownTag(),
  });
  return { name: own.name, id: own.id, own };
}

export interface ImageGalleryArgs {
  readonly group: ClusterGroup;
  readonly settings: Settings;
  readonly version: string;
  readonly madeOf: string;
  /** The machine that the image is taken of; undefined once it is taken. */
  readonly builder?: Builder;
}

/**
 * A gallery, the definition of a cluster's machines in it, and one version of that. Versions before it stay in Azure,
 * since settings may name them, and go with the group; in a group of others nothing would take them away.
 */
export class ImageGallery extends pulumi.ComponentResource {
  readonly imageId: pulumi.Output<string>;

  constructor(name: string, args: ImageGalleryArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:ImageGallery", name, {}, opts);
    const { group, settings, version, madeOf, builder } = args;
    const { location } = settings;
    const resourceGroupName = group.name;
    const child = { parent: this, deletedWith: group.own };

    const gallery = new compute.Gallery(
      `${name}-gallery`,
      { resourceGroupName, galleryName: galleryName(settings) },
      child,
    );
    const definition = new compute.GalleryImage(
      `${name}-node`,
      {
        resourceGroupName,
        galleryName: gallery.name,
        galleryImageName: definitionName,
        identifier: { publisher: "zoned", offer: "kubernetes", sku: "node" },
        osType: "Linux",
        osState: "Generalized",
        hyperVGeneration: "V2",
        architecture: "x64",
        // Of a machine with trusted launch Azure takes none for TrustedLaunchSupported.
        features: [
          { name: "SecurityType", value: "TrustedLaunch" },
          // Left out, Azure takes it to boot from SCSI alone.
          { name: "DiskControllerTypes", value: "SCSI,NVMe" },
        ],
      },
      child,
    );
    // Azure goes on naming it when it is gone, so that it is the same text then.
    const machine = pulumi
      .all([group.id, builder?.captured])
      .apply(([id]) => `${id}/providers/Microsoft.Compute/virtualMachines/${builderName(version)}`);
    const image = new compute.GalleryImageVersion(
      `${name}-version`,
      {
        resourceGroupName,
        galleryName: gallery.name,
        galleryImageName: definition.name,
        galleryImageVersionName: version,
        publishingProfile: {
          // By default it is in one zone, and with that no zone could make machines.
          targetRegions: [
            { name: location, storageAccountType: "Standard_ZRS", regionalReplicaCount: 1 },
          ],
        },
        storageProfile: { source: { virtualMachineId: machine } },
        tags: { ...contentTags(settings), "zoned-made-of": madeOf },
      },
      {
        ...child,
        retainOnDelete: group.own !== undefined,
        // Azure takes half an hour where many regions copy it.
        customTimeouts: { create: "90m" },
      },
    );
    this.imageId = image.id;
    this.registerOutputs();
  }
}

/** What Azure shows of a gallery, its group and this version, on which others write tags too. */
export async function shownGallery(
  settings: Pick<Settings, "clusterName" | "resourceGroup">,
  version: string,
  { arm, subscriptionId }: AzureConnection,
): Promise<Shown> {
  const group = groupId({ ...settings, clusterName: imageGroupName(settings) }, subscriptionId);
  const gallery = `${group}/providers/Microsoft.Compute/galleries/${galleryName(settings)}`;
  const definition = `${gallery}/images/${definitionName}`;
  const ask = async (type: string, path: string, apiVersion: string) => {
    const found = await arm.get<ShownResource>(path, { "api-version": apiVersion }, { name: "" });
    return found === undefined
      ? []
      : [[shownAs(`azure-native:${type}`, found.name), found] as const];
  };
  const groups = await ask("resources:ResourceGroup", group, "2024-03-01");
  // Without one there is nothing to ask for, and perhaps no provider that is registered.
  if (groups.length === 0) return new Map();
  const others = await Promise.all([
    ask("compute:Gallery", gallery, "2024-03-03"),
    ask("compute:GalleryImage", definition, "2024-03-03"),
    ask("compute:GalleryImageVersion", `${definition}/versions/${version}`, "2024-03-03"),
  ]);
  return new Map([...groups, ...others.flat()]);
}
