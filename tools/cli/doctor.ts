import { checkCluster, type Cluster, type Report } from "../doctor/doctor";
import { asJson, checkLines, verdict, zoneLines } from "../doctor/report";
import { pause } from "../shared/concurrency";
import { Progress } from "../shared/progress";
import { perform, typed } from "./command";
import { clusterOf, type StackWords } from "./stack";

const pauseBetween = 5_000;

interface Words extends StackWords {
  readonly json: boolean;
  /** Milliseconds; without it, it is looked at once. */
  readonly wait?: number;
}

/** Looks again until the cluster is healthy, or the time is over. */
async function checkUntilHealthy(
  cluster: Cluster,
  wait: number,
  progress: Progress,
  signal: AbortSignal,
): Promise<Report> {
  const until = Date.now() + wait;
  return progress.during("looking at the cluster", async (step) => {
    for (;;) {
      const report = await checkCluster(cluster);
      if (report.healthy || Date.now() >= until) return report;
      step.update(verdict(report));
      await pause(Math.min(pauseBetween, until - Date.now()), signal);
    }
  });
}

async function run({ json, wait = 0, ...words }: Words, signal: AbortSignal): Promise<number> {
  // A request that is under way is not worth its answer.
  signal.addEventListener("abort", () => setTimeout(() => process.exit(130), 1000).unref());
  const progress = new Progress(process.stderr);
  const { stack, cluster } = await clusterOf(words, signal);
  const report = await checkUntilHealthy(cluster, wait, progress, signal);
  const lines = json
    ? [asJson(stack, report)]
    : [
        ...[...checkLines(report), "", ...zoneLines(report), ""],
        `stack ${stack}: ${verdict(report)}`,
      ];
  process.stdout.write(`${lines.join("\n")}\n`);
  return report.healthy ? 0 : report.looked ? 1 : 2;
}

perform((signal) => run(typed<Words>().options, signal), 2);
