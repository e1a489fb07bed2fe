import * as pulumi from "@pulumi/pulumi";

import type { AzureConnection } from "../azure/connection";
import { hardwareOf } from "../azure/hardware";
import { getSkus } from "../azure/offers";
import type { Settings } from "../settings/settings";
import { machinesOf, type MachinePlan } from "../settings/topology";

/** What the machine that an image is taken of has in common with one of the cluster's. */
export interface BuilderMachine extends Pick<MachinePlan, "size" | "zone" | "osDiskSku"> {
  readonly isNvmeOnly: boolean;
}

/**
 * The first machine of the cluster on which an image of x64 boots.
 *
 * @throws RunError where there is none
 */
export async function builderMachine(
  settings: Settings,
  connection: AzureConnection,
): Promise<BuilderMachine> {
  const machines = machinesOf(settings);
  const hardware = hardwareOf(machines, { skus: await getSkus(settings, connection) });
  const first = machines.find(({ name }) => hardware.get(name)?.architecture === "x64");
  if (first === undefined) {
    const sizes = [...new Set(machines.map(({ size }) => size))];
    throw new pulumi.RunError(
      `all machines of this cluster have Arm processors (${sizes.join(", ")}), and an image is for x64: machines of these sizes are made of ` +
        "Ubuntu's image, also where the setting image names another. Run npm run image where controlPlaneSize or a pool has an x64 size",
    );
  }
  const { size, zone, osDiskSku } = first;
  return { size, zone, osDiskSku, isNvmeOnly: hardware.get(first.name)!.isNvmeOnly };
}
