import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { Command, InvalidArgumentError } from "commander";

import type { Expected } from "../doctor/check";
import { checkCluster, type Report, type Cluster } from "../doctor/doctor";
import { asJson, checkLines, verdict, zoneLines } from "../doctor/report";
import { proxyOf } from "../local-azure/daemon/attachment";
import { runningDaemon } from "../local-azure/daemon/daemon-client";
import { hostSettings } from "../local-azure/machines/kinds";
import { passphraseOf } from "../local-azure/stack/passphrase";
import { rehearsalFolder } from "../local-azure/stack/state-folder";
import { checkout } from "../shared/checkout";
import { Progress } from "../shared/progress";
import { Interrupted, UserError } from "../shared/user-error";
import { type Ended, pulumi } from "../stack/pulumi";
import { ownPulumi } from "../stack/recover/own-pulumi";
import { interruptible, parse, printError } from "./command";

const pauseBetween = 5_000;
const defaultState = join(checkout, ".local-azure");

interface Words {
  readonly stack?: string;
  readonly state?: string;
  readonly json: boolean;
  /** Milliseconds. */
  readonly wait: number;
}

/** A stack of the user's own, by the pulumi and the backend of this shell. */
async function ownCluster(stack: string, signal: AbortSignal): Promise<Cluster> {
  const ended = await ownPulumi(checkout, signal)(wordsOf(stack));
  return clusterIn(ended, stack, `a rehearsal's stack: add --state ${defaultState}`);
}

/** A stack of a rehearsal that runs; nothing is started for it. */
async function rehearsedCluster(
  folder: string,
  stack: string,
  signal: AbortSignal,
): Promise<Cluster> {
  const state = rehearsalFolder(folder);
  const daemon = state === undefined ? undefined : runningDaemon(state);
  if (state === undefined || daemon === undefined) {
    throw new UserError(
      `no rehearsal runs in ${folder}: npm start begins one or continues it; for a stack on Azure, use --stack without --state`,
    );
  }
  const { binaries, ports } = daemon;
  const passphrase = passphraseOf(state);
  const engine = { binaries, state, program: checkout, passphrase, signal };
  const ended = await pulumi(wordsOf(stack), engine);
  const cluster = clusterIn(
    ended,
    stack,
    `a stack that was never rehearsed: npm start -- --stack ${stack}`,
  );
  return { ...cluster, proxy: proxyOf(ports) };
}

const wordsOf = (stack: string): string[] => [
  ...["stack", "output", "--json", "--show-secrets", "--stack", stack],
];

/** @throws UserError when the outputs are not those of a cluster */
function clusterIn({ code, stdout, stderr }: Ended, stack: string, otherwise: string): Cluster {
  if (code !== 0) {
    throw new UserError(
      `the outputs of stack ${stack} cannot be read, since pulumi stack output ended with ${code}: ` +
        `${(stderr || stdout).trim()}\n  Name one of pulumi stack ls, in the backend and with the passphrase of pulumi up; or ${otherwise}`,
    );
  }
  const { kubeconfig, machines, cluster } = JSON.parse(stdout) as {
    kubeconfig?: string;
    machines?: Expected["machines"];
    cluster?: { kubernetesVersion: string };
  };
  if (kubeconfig === undefined || machines === undefined) {
    throw new UserError(
      `stack ${stack} has no outputs kubeconfig and machines: run pulumi up until it ends well`,
    );
  }
  return { kubeconfig, machines, kubernetesVersion: cluster?.kubernetesVersion };
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
      step.say(verdict(report));
      await pause(Math.min(pauseBetween, until - Date.now()), undefined, { signal }).catch(() => {
        throw new Interrupted();
      });
    }
  });
}

async function run({ stack: named, state, json, wait }: Words): Promise<number> {
  const signal = interruptible();
  // A request that is under way is not worth its answer.
  signal.addEventListener("abort", () => setTimeout(() => process.exit(130), 1000).unref());
  const progress = new Progress(process.stderr);
  try {
    const folder = state ?? (named === undefined ? defaultState : undefined);
    const stack = named ?? (folder && hostSettings(folder) ? "machines" : "local");
    const cluster = await (folder === undefined
      ? ownCluster(stack, signal)
      : rehearsedCluster(resolve(folder), stack, signal));
    const report = await checkUntilHealthy(cluster, wait, progress, signal);
    const lines = json
      ? [asJson(stack, report)]
      : [
          ...[...checkLines(report), "", ...zoneLines(report), ""],
          `stack ${stack}: ${verdict(report)}`,
        ];
    process.stdout.write(`${lines.join("\n")}\n`);
    return report.healthy ? 0 : report.looked ? 1 : 2;
  } catch (error) {
    if (signal.aborted || error instanceof Interrupted) return 130;
    printError(error);
    return 2;
  }
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
    "Says how a living cluster is, by what its stack's outputs say that it should be: a line per check, and what to " +
      "do about each problem. A stack on Azure is read by the pulumi, the backend and the passphrase of this shell. " +
      "Changes nothing but a Lease of its own, which shows that etcd takes writes.",
  )
  .option("--stack <name>", "the stack (default: the one that npm start has rehearsed)")
  .option(
    "--state <folder>",
    "the stack is a rehearsal's, in this folder (default without --stack: the folder of npm start)",
  )
  .option("--json", "print one JSON document", false)
  .option("--wait <time>", "look again until it is healthy, for so long: 90s, 10m", duration, 0)
  .addHelpText(
    "after",
    "\nExit codes: 0 healthy; 1 not healthy; 2 could not look: no such stack, no outputs, the API does not answer, " +
      "or wrong usage; 130 interrupted.",
  )
  .action(async (words: Words) => {
    process.exitCode = await run(words);
  });

parse(program);
