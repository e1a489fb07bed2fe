import * as compute from "@pulumi/azure-native/compute";
import * as network from "@pulumi/azure-native/network";
import * as pulumi from "@pulumi/pulumi";
import { Address4 } from "ip-address";

import { type ExistingNetwork, keyOf } from "../azure/existing-network";
import { getImage, imageProblems, imageReferenceOf } from "../azure/image-offers";
import type { ClusterGroup } from "../cluster-group";
import { cloudInitText } from "../machine/payload";
import { customScript, osProfileOf, securityProfileOf } from "../machine/vm-profile";
import { Network } from "../network";
import { atAddresses } from "../plan/ways";
import type { Settings } from "../settings/settings";
import { machineMirror } from "../settings/sources";
import { captureWhenOff, outputOf } from "./capture";
import type { AzureConnection } from "../azure/resource-manager";
import { hardwareOf } from "../azure/hardware";
import { getSkus } from "../azure/offers";
import { refuse } from "../plan/engine";
import { type MachinePlan, machinesOf } from "../settings/topology";

/**
 * A network of the builder's own is peered with none.
 *
 * @throws RunError where its machine could fetch nothing
 */
export function refusePrivateSources({ nodeSubnets, mirror, httpProxy }: Settings): void {
  const sources = [machineMirror(mirror), httpProxy?.https ?? "", httpProxy?.http ?? ""];
  const closed = atAddresses(sources).find(({ host }) => new Address4(host).isPrivate());
  if (nodeSubnets.length > 0 || closed === undefined) return;
  throw new pulumi.RunError(
    `mirror or httpProxy is at ${closed.host}, a private address, and without nodeSubnets an image is made in a network of its own, which leads to no other: ` +
      "make it with nodeSubnets from where that is reached (pulumi config set --path 'nodeSubnets[0]' ID). A living cluster keeps its subnets: " +
      "docs/image.md says how another stack makes the image",
  );
}

/** The machine that a version is taken of. */
export const builderName = (version: string): string => `builder-${version.replaceAll(".", "-")}`;

/** The machine that an image is taken of: a regular one of the cluster's, by another name. */
export interface BuilderMachine extends MachinePlan {
  readonly isNvmeOnly: boolean;
}

/**
 * The first machine of the cluster on which an image of x64 boots.
 *
 * @throws RunError where there is none, or Azure has no Ubuntu for it
 */
export async function builderMachine(
  settings: Settings,
  version: string,
  connection: AzureConnection,
): Promise<BuilderMachine> {
  const machines = machinesOf(settings);
  const skus = await getSkus(settings, connection);
  const hardware = hardwareOf(machines, { skus });
  const first = machines.find(({ name }) => hardware.get(name)?.architecture === "x64");
  if (first === undefined) {
    const sizes = [...new Set(machines.map(({ size }) => size))];
    throw new pulumi.RunError(
      `all machines of this cluster have Arm processors (${sizes.join(", ")}), and an image is for x64: machines of these sizes are made of ` +
        "Ubuntu's image, also where the setting image names another. Run npm run image where controlPlaneSize or a pool has an x64 size",
    );
  }
  const { spot: _, ...regular } = first;
  const builder = { ...regular, name: builderName(version) };
  const ofUbuntu = { ...settings, image: "" };
  const { arm, subscriptionId } = connection;
  const offers = new Map([["x64", await getImage(arm, subscriptionId, ofUbuntu, "x64")] as const]);
  refuse(imageProblems([builder], offers, hardwareOf([builder], { skus }), ofUbuntu));
  return { ...builder, isNvmeOnly: hardware.get(first.name)!.isNvmeOnly };
}

export interface BuilderArgs {
  readonly group: ClusterGroup;
  readonly settings: Settings;
  readonly machine: BuilderMachine;
  readonly bootData: string;
  /** The network of the subnets that the settings name. */
  readonly existingNetwork: ExistingNetwork | undefined;
}

/**
 * A machine as the cluster's, up to where it would join: the same first boot, and then the images of add-ons. It ends
 * off and without what is one machine's own.
 */
export class Builder extends pulumi.ComponentResource {
  /** Id of the machine, once an image can be taken of it. */
  readonly captured: pulumi.Output<string>;
  /** What it has of what first boot installs. */
  readonly contents: pulumi.Output<string>;

  constructor(name: string, args: BuilderArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:ImageBuilder", name, {}, opts);
    const { group, settings, machine, bootData, existingNetwork } = args;
    const { name: vmName, size, zone, osDiskSku, isNvmeOnly } = machine;
    const resourceGroupName = group.name;
    const child = { parent: this, deletedWith: group.own };
    const [subnet] = settings.nodeSubnets;
    if (subnet !== undefined && !existingNetwork?.subnets.has(keyOf(subnet))) {
      throw new pulumi.RunError(
        `Azure has no subnet ${subnet}, or this login does not see it, and an image is made in the first of nodeSubnets. Have the login be given ` +
          "Reader on its network, or correct the id (pulumi config set --path 'nodeSubnets[0]' ID)",
      );
    }

    // A way out of its own, and none in, whatever the cluster's is. In a group of others the
    // cluster's network is there too.
    const own = {
      clusterName: `${settings.clusterName}-builder`,
      egress: "single",
      apiAccess: "public",
      apiAccessCidrs: [],
      sshAccessCidrs: [],
    } as const;
    const place = new Network(
      `${name}-network`,
      {
        resourceGroup: group,
        settings: { ...settings, ...own, zones: [zone] },
        shown: new Map(),
        existingNetwork,
      },
      { parent: this },
    );
    const nic = new network.NetworkInterface(
      `${name}-nic`,
      {
        resourceGroupName,
        networkInterfaceName: `${vmName}-nic`,
        ipConfigurations: [
          {
            name: "node",
            subnet: { id: place.subnetIds.get(zone)! },
            privateIPAllocationMethod: "Dynamic",
          },
        ],
      },
      { ...child, deleteBeforeReplace: true },
    );
    const vm = new compute.VirtualMachine(
      `${name}-vm`,
      {
        resourceGroupName,
        vmName,
        zones: [zone],
        hardwareProfile: { vmSize: size },
        networkProfile: { networkInterfaces: [{ id: nic.id, deleteOption: "Detach" }] },
        osProfile: osProfileOf(settings, vmName, bootData),
        storageProfile: {
          imageReference: imageReferenceOf({ ...settings, image: "" }, "x64"),
          ...(isNvmeOnly && { diskControllerType: "NVMe" }),
          // Of the image's own size, since no machine's may be smaller than its image's.
          osDisk: {
            createOption: "FromImage",
            deleteOption: "Delete",
            managedDisk: { storageAccountType: osDiskSku },
          },
        },
        securityProfile: securityProfileOf(settings),
        diagnosticsProfile: { bootDiagnostics: { enabled: true } },
      },
      { ...child, deleteBeforeReplace: true },
    );
    const step = new compute.VirtualMachineExtension(
      `${name}-generalize`,
      {
        resourceGroupName,
        vmName: vm.name,
        vmExtensionName: "generalize",
        ...customScript,
        settings: { script: Buffer.from(cloudInitText("generalize.sh")).toString("base64") },
      },
      { ...child, deletedWith: vm, customTimeouts: { create: "95m" } },
    );
    this.contents = step.id.apply((id) => outputOf(id, settings));
    // Its output is read first: Azure may not show it of a machine that is off.
    this.captured = pulumi
      .all([vm.id, this.contents])
      .apply(([id]) => captureWhenOff(id, settings));
    this.registerOutputs();
  }
}
