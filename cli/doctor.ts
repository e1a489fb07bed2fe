import { Command, InvalidArgumentError } from "commander";

import { checkCluster, type Report, type Cluster } from "../doctor/doctor";
import { asJson, checkLines, verdict, zoneLines } from "../doctor/report";
import { pause } from "../shared/pause";
import { Progress } from "../shared/progress";
import { clusterOf, stackOption, stateOption, type StackWords } from "./cluster-of-stack";
import { parse, perform } from "./command";

const pauseBetween = 5_000;

interface Words extends StackWords {
  readonly json: boolean;
  /** Milliseconds. */
  readonly wait: number;
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

async function run({ json, wait, ...words }: Words, signal: AbortSignal): Promise<number> {
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

function duration(text: string): number {
  const [, number, unit = ""] = /^(\d+)(s|m|h)$/.exec(text) ?? [];
  const seconds = { s: 1, m: 60, h: 3600 }[unit];
  if (seconds !== undefined) return Number(number) * seconds * 1000;
  throw new InvalidArgumentError("Expected a whole number with its unit, such as 90s, 10m or 1h.");
}

const program = new Command("npm run").exitOverride();

program
  .command("doctor")
  .description(
    "Compares a running cluster with its stack's outputs: a line per check, and what to " +
      "do about each problem. A stack on Azure is read by the pulumi, the backend and the passphrase of this shell. " +
      "Changes nothing but a Lease of its own, which shows that etcd takes writes.",
  )
  .option(...stackOption)
  .option(...stateOption)
  .option("--json", "print one JSON document", false)
  .option("--wait <time>", "look again until it is healthy, for so long: 90s, 10m", duration, 0)
  .addHelpText(
    "after",
    "\nExit codes: 0 healthy; 1 not healthy; 2 could not look: no such stack, no outputs, the API does not answer, " +
      "or wrong usage; 130 interrupted.",
  )
  .action((words: Words) => perform((signal) => run(words, signal)));

parse(program, 2);
