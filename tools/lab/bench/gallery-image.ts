import type { ResourceManager } from "../../local-azure/arm/resource-manager";
import { valid } from "../../local-azure/tests/support/arm/valid-resources";

const home = "westeurope";

/** A gallery image for machines of this region, made of one that is gone again, in no time. Returns its id. */
export async function someGalleryImage(arm: ResourceManager, location: string): Promise<string> {
  const { factor } = arm.durations;
  arm.durations.set({ factor: 0 });
  try {
    for (const [kind, [id, body]] of Object.entries(valid)) {
      await arm.put(id, body);
      if (kind === "machine") break;
    }
    const [machine] = valid.machine;
    const image = `${valid.definition[0]}/versions/1.0.0`;
    await arm.power(machine, "deallocate", { perform: () => undefined });
    await arm.generalize(machine);
    await arm.put(image, {
      location: home,
      publishingProfile: {
        targetRegions: [...new Set([home, location])].map((name) => ({ name })),
      },
      storageProfile: { source: { virtualMachineId: machine } },
    });
    await arm.delete(machine);
    return image;
  } finally {
    arm.durations.set({ factor });
  }
}
