import { basename, resolve } from "node:path";

import { ApiError, NoAnswer } from "../../components/cluster/kubernetes-api";
import { checkCluster, type Cluster, type Report } from "../doctor/doctor";
import {
  asJson,
  checkLines,
  getInventory,
  inventoryLines,
  verdict,
  zoneLines,
} from "../doctor/report";
import { checkout } from "../shared/checkout";
import { pause } from "../shared/concurrency";
import { Progress } from "../shared/progress";
import { UserError } from "../shared/user-error";
import { commandName, perform, typed, writeOutput } from "./command";
import { clusterOf, type StackWords } from "./stack";

const pauseBetween = 5_000;

interface DoctorWords extends StackWords {
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

async function diagnose(
  { json, wait = 0, ...words }: DoctorWords,
  signal: AbortSignal,
): Promise<number> {
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

const { version } = require(resolve(checkout, "package.json")) as { version: string };

/** Ids of subscriptions and machines, and where the API is. */
const withoutIds = (text: string, server: string): string =>
  text
    .replaceAll(new RegExp(`${new URL(server).hostname}(:\\d+)?( \\([^)]*\\))?`, "g"), "(API)")
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, "(id)");

/** A cluster that is sick may refuse what its nodes and add-ons are read from; how sick is known. */
function unread(error: unknown): string[] {
  if (!(error instanceof ApiError || error instanceof NoAnswer)) throw error;
  return ["## Inventory", "", `It could not be read: ${error.message}`];
}

interface ReportWords extends StackWords {
  readonly output?: string;
}

async function writeReport({ output, ...words }: ReportWords, signal: AbortSignal): Promise<void> {
  const { stack, cluster } = await clusterOf(words, signal);
  const { health, inventory } = await new Progress(process.stderr).during(
    "looking at the cluster",
    async () => {
      const health = await checkCluster(cluster);
      if (!health.looked) throw new UserError(checkLines(health).join("\n"));
      const inventory = await getInventory(cluster).then(inventoryLines, unread);
      return { health, inventory };
    },
  );
  const lines = [
    `# Report of stack ${stack}`,
    "",
    `Made on ${health.time} by version ${version} of the program. It has no secret, no id and no address of the API; read it before you share it.`,
    "",
    "## Health",
    "",
    ...checkLines(health).map((line) => `- ${line}`),
    "",
    ...inventory,
  ];
  const text = withoutIds(`${lines.join("\n")}\n`, health.server);
  const file = writeOutput(output ?? `zoned-report-${basename(stack)}.md`, text);
  process.stdout.write(`stack ${stack}: ${verdict(health)}\n${file}\n`);
}

perform(
  (signal) =>
    commandName() === "report"
      ? writeReport(typed<ReportWords>().options, signal)
      : diagnose(typed<DoctorWords>().options, signal),
  2,
);
