import type { ResourceManager } from "../../local-azure/arm/resource-manager";
import { valid } from "../../local-azure/tests/support/arm/valid-resources";
import { type Link, longestChain } from "./chain";
import { type Bench, onLocalAzure, stackOn, stateOf, timed } from "./local-stack";

/** Operations take this share of Azure's time. */
const factor = 0.5;

/** For `pulumi up --parallel`; the default depends on the number of cores. */
const parallel = "64";

export interface WallTime {
  readonly stack: string;
  /** Seconds with at least one Azure operation in progress. */
  readonly simulated: number;
  /** Seconds without one: engine, program and cluster. */
  readonly own: number;
  readonly predicted: number;
  readonly chain: readonly Link[];
  readonly forced: number;
}

/**
 * The first update of a stack, with a share of the durations that others have measured on Azure.
 *
 * @param of what its machines are made of
 */
export const wallTime = (
  bench: Bench,
  name: string,
  of: "Ubuntu" | "an image" = "Ubuntu",
): Promise<WallTime> =>
  onLocalAzure(bench, factor, async (azure, state) => {
    const stack = of === "Ubuntu" ? name : `${name} of ${of}`;
    bench.log(`stack ${stack}: first update, at ${factor} of Azure's time`);
    const rehearsal = await stackOn(bench, azure, state, { stack: name });
    if (of === "an image") {
      const { location } = rehearsal.settings;
      await rehearsal.configure({ image: await someGalleryImage(azure.arm, String(location)) });
    }
    const { seconds } = await timed(() => rehearsal.up("--skip-preview", "--parallel", parallel));
    const simulated = covered(
      azure.arm.log
        .read()
        .filter(({ method }) => method === "PUT")
        .map(({ startedAt, endedAt }) => [Date.parse(startedAt), Date.parse(endedAt)]),
    );
    const own = seconds - simulated;
    const chain = longestChain(await stateOf(rehearsal));
    const forced = chain.reduce((sum, link) => sum + link.seconds, 0);
    return { stack, simulated, own, predicted: own + simulated / factor, chain, forced };
  });

/** Seconds that are in at least one of the spans, which are in milliseconds. */
function covered(spans: readonly (readonly [number, number])[]): number {
  let milliseconds = 0;
  let until = -Infinity;
  for (const [start, end] of [...spans].sort(([a], [b]) => a - b)) {
    milliseconds += Math.max(0, end - Math.max(start, until));
    until = Math.max(until, end);
  }
  return milliseconds / 1000;
}

const home = "westeurope";

/** A gallery image for machines of this region, made of one that is gone again, in no time. Returns its id. */
async function someGalleryImage(arm: ResourceManager, location: string): Promise<string> {
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
