import { join } from "node:path";

import { bareProgram, withoutDynamic } from "./bare-program";
import { type Bench, median, onLocalAzure, stackOn, stateOf, timed } from "./local-stack";

const rounds = 3;

export interface Previews {
  readonly resources: number;
  /** Seconds, medians. */
  readonly preview: number;
  readonly bare: number;
  readonly unchangedPreview: number;
  readonly unchangedUp: number;
}

/**
 * The local stack's preview beside one of a program that only registers as many resources of the
 * same types, and its update without changes beside its preview; in turn, so that a busy minute meets
 * both.
 */
export const previews = (bench: Bench): Promise<Previews> =>
  onLocalAzure(bench, 0, async (azure, state) => {
    const stack = await stackOn(bench, azure, state, { stack: "local" });
    bench.log("local stack: up, to learn which resources it has");
    await timed(() => stack.up());
    const resources = await stateOf(stack);
    // Removed with the folder.
    const program = bareProgram(resources, join(state, "resources.json"));
    const bare = await stackOn(bench, azure, join(state, "bare"), program);

    const unchanged: [number[], number[]] = [[], []];
    for (let round = 1; round <= rounds; round += 1) {
      bench.log(`local stack without changes: preview and up, ${round} of ${rounds}`);
      unchanged[0].push((await timed(() => stack.preview())).seconds);
      unchanged[1].push((await timed(() => stack.up("--skip-preview"))).seconds);
    }

    const fresh: [number[], number[]] = [[], []];
    await onLocalAzure(bench, 0, async (empty, emptyState) => {
      const real = await stackOn(bench, empty, emptyState, { stack: "local" });
      for (let round = 1; round <= rounds; round += 1) {
        bench.log(`fresh local stack and the bare program: preview, ${round} of ${rounds}`);
        fresh[0].push((await timed(() => real.preview())).seconds);
        fresh[1].push((await timed(() => bare.preview())).seconds);
      }
    });
    return {
      resources: withoutDynamic(resources).length,
      preview: median(fresh[0]),
      bare: median(fresh[1]),
      unchangedPreview: median(unchanged[0]),
      unchangedUp: median(unchanged[1]),
    };
  });
