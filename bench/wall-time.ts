import { type Link, longestChain } from "./chain";
import { type Bench, onLocalAzure, stackOn, stateOf, timed } from "./cloud";

/** Share of Azure's time that is played. */
const factor = 0.5;

/** What `pulumi up` may do side by side; the engine's own default follows the machine's cores. */
const parallel = "64";

export interface WallTime {
  readonly stack: string;
  /** Seconds in which Azure had something under way, at the share that was played. */
  readonly played: number;
  /** Seconds in which it had not: the engine's, the program's and the cluster's own. */
  readonly own: number;
  readonly predicted: number;
  readonly chain: readonly Link[];
  readonly forced: number;
}

/** The first `up` of a stack, with a share of the durations that others have measured on Azure. */
export const wallTime = (bench: Bench, stack: string): Promise<WallTime> =>
  onLocalAzure(bench, factor, async (azure, state) => {
    bench.say(`stack ${stack}: first up, at ${factor} of Azure's time`);
    const rehearsal = await stackOn(bench, azure, state, { stack });
    const { seconds } = await timed(() => rehearsal.up("--skip-preview", "--parallel", parallel));
    const played = covered(
      azure.cloud.log
        .read()
        .filter(({ method }) => method === "PUT")
        .map(({ startedAt, endedAt }) => [Date.parse(startedAt), Date.parse(endedAt)]),
    );
    const own = seconds - played;
    const chain = longestChain(await stateOf(rehearsal));
    const forced = chain.reduce((sum, link) => sum + link.seconds, 0);
    return { stack, played, own, predicted: own + played / factor, chain, forced };
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
