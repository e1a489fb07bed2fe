import { join, resolve } from "node:path";

import { Command, InvalidArgumentError, Option } from "commander";

import { bench } from "../bench/bench";
import { defaultScale } from "../local-azure/machines/qemu/sizes";
import { defaultState } from "../local-azure/stack/state-folder";
import { cacheFolder } from "../programs/tools";
import { Progress } from "../shared/progress";
import { type FaultsOptions, testFaults } from "../tests/faults/suite";
import { chapters } from "../tests/machines/chapters";
import { testMachines } from "../tests/machines/suite";
import { lint, test } from "./test/check";
import { parse, perform } from "./command";
import { mirrorCommand } from "./mirror";
import { start } from "./start";
import { stop } from "./stop";

function port(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1024 && value <= 65_530) return value;
  throw new InvalidArgumentError(
    "Expected a port from 1024 to 65530; the five after it are used too.",
  );
}

function atLeastOne(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1) return value;
  throw new InvalidArgumentError("Expected a whole number from 1.");
}

function scale(text: string): number {
  const value = Number(text);
  if (value >= 0.1 && value <= 1) return value;
  throw new InvalidArgumentError("Expected a factor from 0.1 to 1.");
}

interface StartWords {
  readonly stack?: string;
  readonly port?: number;
  readonly state: string;
  readonly machines: "simulated" | "qemu";
  readonly scale: number;
}

const progress = new Progress();

const program = new Command("zoned")
  .description("Rehearses this Pulumi program on a local Azure: npm start, npm stop, npm test")
  .exitOverride();

const stateOption = [
  "--state <folder>",
  "where the rehearsal keeps everything",
  defaultState,
] as const;

program
  .command("start")
  .description("set everything up and run pulumi up, then print how to use the cluster")
  .option(
    "--stack <name>",
    "whose settings to rehearse: local, dev, prod or machines (default: local, or machines with real ones)",
  )
  .addOption(
    new Option("--machines <kind>", "what machines are")
      .choices(["simulated", "qemu"])
      .default("simulated"),
  )
  .option(
    "--scale <factor>",
    "how much of its size's memory a real machine gets",
    scale,
    defaultScale,
  )
  .option(
    "--port <number>",
    "first of six ports in a row for the local Azure (default: any free ones)",
    port,
  )
  .option(...stateOption)
  .action(({ machines, scale: qemuScale, ...options }: StartWords) =>
    perform(async (signal) => {
      const qemu = machines === "qemu" ? { scale: qemuScale } : undefined;
      const stack = options.stack ?? (qemu ? "machines" : "local");
      await start({ ...options, stack, qemu, state: resolve(options.state) }, progress, signal);
    }),
  );

program
  .command("stop")
  .description("run pulumi destroy, end every process and remove every file of the rehearsal")
  .option("--discard", "remove everything without pulumi destroy", false)
  .option(...stateOption)
  .action((options: { discard: boolean; state: string }) =>
    perform(async (signal) => {
      await stop({ ...options, state: resolve(options.state) }, progress, signal);
    }),
  );

program
  .command("lint")
  .description("eslint and prettier over the whole checkout")
  .action(() => perform((signal) => lint(progress, signal)));

program
  .command("test")
  .description(
    "eslint, prettier, type check, shellcheck and the tests, with the real engine and control plane; " +
      "those of living clusters are npm run test:day-2",
  )
  .argument("[jest...]", "what to pass to jest, such as the path of one test file")
  .allowUnknownOption()
  .action((jest: string[]) => perform((signal) => test(jest, progress, signal)));

program
  .command("test-machines")
  .description(
    "what real machines show: a report of what is true of them, and exit code 1 when something is not",
  )
  .argument("[chapter...]", `${chapters.map(({ key }) => key).join(", ")} (default: all of them)`)
  .option("--keep", "leave the machines when something is not true, to look into them", false)
  .option(
    "--folder <folder>",
    "where machines and report are",
    join(cacheFolder(), "test-machines"),
  )
  .action((only: string[], { keep, folder }: { keep: boolean; folder: string }) =>
    perform((signal) => testMachines({ folder: resolve(folder), only, keep }, progress, signal)),
  );

program
  .command("test-faults")
  .description(
    "kills processes and lets Azure go wrong at every request of an up and a destroy: a report of how each ended, " +
      "and exit code 1 when one did not end well; goes on where an earlier run ended",
  )
  .argument("[scenario...]", "first-up, replacement, resize, labels, destroy (default: all)")
  .option("--only <pattern>", "only cases whose name matches this regular expression")
  .option("--sample <number>", "only so many, of as many kinds of request as it can", atLeastOne)
  .option("--jobs <number>", "how many at a time", atLeastOne, 2)
  .option("--list", "name the cases and try none", false)
  .option("--fresh", "try again what an earlier run has tried", false)
  .option("--folder <folder>", "where the report is", join(cacheFolder(), "test-faults"))
  .action((keys: string[], options: Omit<FaultsOptions, "keys">) =>
    perform((signal) =>
      testFaults({ ...options, keys, folder: resolve(options.folder) }, progress, signal),
    ),
  );

program
  .command("bench")
  .description(
    "the figures of docs/performance.md, as ratios within one run; exit code 1 when one is too high",
  )
  .action(() => perform((signal) => bench(progress, signal)));

program
  .command("mirror")
  .description("fill a folder with what machines without internet fetch, and serve it")
  .option("--folder <folder>", "where the mirror is (default: one in the cache)")
  .option("--system <name>", "what the machines run: ubuntu-24.04 or debian-13")
  .option("--serve <address:port>", "serve it there until Ctrl-C")
  .action((options: { folder?: string; system?: string; serve?: string }) =>
    perform((signal) => mirrorCommand(options, progress, signal)),
  );

parse(program);
