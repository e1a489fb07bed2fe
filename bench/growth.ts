import { type Bench, onLocalAzure, stackOn, timed } from "./cloud";
import { peakMemory } from "./processes";

/** One control plane and workers. */
const sizes = [3, 30, 300] as const;

const rounds = 2;

export interface Growth {
  readonly machines: number;
  readonly resources: number;
  readonly seconds: number;
  /** Engine, language host and program together, at their peak. */
  readonly mebibytes: number;
}

/** The first preview of ever larger stacks; the quickest of some, since nothing makes one too quick. */
export async function growth(bench: Bench): Promise<readonly Growth[]> {
  const found: Growth[] = [];
  for (const machines of sizes) {
    found.push(
      await onLocalAzure(bench, 0, async (azure, state) => {
        const workers = { name: "workers", count: machines - 1, size: "Standard_B2s" };
        // Room for 300 machines and their pods.
        const ranges = { networkCidr: "172.16.0.0/12", podCidr: "100.64.0.0/10" };
        const settings = { ...ranges, workerPools: [workers] };
        const stack = await stackOn(bench, azure, state, { stack: "local", settings });
        const results: Growth[] = [];
        for (let round = 1; round <= rounds; round += 1) {
          bench.say(`preview of ${machines} machines, ${round} of ${rounds}`);
          const { result, mebibytes } = await peakMemory(() => timed(() => stack.preview()));
          const resources = result.run.changes["create"] ?? 0;
          results.push({ machines, resources, seconds: result.seconds, mebibytes });
        }
        return results.reduce((best, one) => (one.seconds < best.seconds ? one : best));
      }),
    );
  }
  return found;
}
