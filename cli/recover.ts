import { join, resolve } from "node:path";

import { Command } from "commander";

import { checkout } from "../shared/checkout";
import { Progress } from "../shared/progress";
import { Interrupted } from "../shared/user-error";
import { ownPulumi, ownSubscription } from "../stack/recover/own-pulumi";
import { recover, summaryOf } from "../stack/recover/recover";
import { interruptible, parse, printError } from "./command";

interface Words {
  readonly stack: string;
  readonly configFile?: string;
  readonly copies: string;
  readonly dryRun: boolean;
}

async function run({ stack, configFile, copies, dryRun }: Words): Promise<number> {
  const progress = new Progress();
  const signal = interruptible();
  try {
    const recovery = await recover({
      stack,
      pulumi: ownPulumi(checkout, signal),
      configFile: configFile && resolve(configFile),
      copies: resolve(copies),
      subscription: ownSubscription,
      dryRun,
      progress,
      signal,
    });
    const lines = summaryOf(recovery);
    for (const line of lines) progress.line(line);
    const { looked, adopted, forgotten, failed, left, refusal } = recovery;
    if (dryRun) progress.line("nothing was changed, since --dry-run was given");
    else if ([...adopted, ...forgotten, ...failed, ...left].length > 0) {
      progress.line(`go on with: pulumi up --stack ${stack}`);
    } else if (refusal === undefined) {
      progress.line("nothing to recover: the state knows all that Azure has of it");
    }
    return refusal === undefined || looked.length > 0 || left.length > 0 ? 0 : 1;
  } catch (error) {
    if (signal.aborted || error instanceof Interrupted) {
      process.stderr.write("run the same command again; it goes on from here\n");
      return 130;
    }
    printError(error);
    return 1;
  }
}

const program = new Command("npm run").exitOverride();

program
  .command("recover")
  .description(
    "Repairs a stack's state from Azure after a pulumi up that was killed or cut off, " +
      "so that pulumi up goes on. Uses the pulumi, the backend, the passphrase and the Azure credentials of " +
      "this shell. Changes the state only, nothing in Azure.",
  )
  .requiredOption("--stack <name>", "the stack, as in pulumi up --stack")
  .option("--config-file <file>", "the stack's settings, as in pulumi up --config-file")
  .option(
    "--copies <folder>",
    "where a copy of the state as it was is kept, readable by its owner only",
    join(checkout, ".recover"),
  )
  .option("--dry-run", "print what would be looked for, and change nothing", false)
  .addHelpText(
    "after",
    "\nExit codes: 0 recovered, or nothing to recover; 1 failed, or nothing was found and pulumi preview is " +
      "refused; 2 wrong usage; 130 interrupted.\nInterrupted or failed, it goes on when it is run again.",
  )
  .action(async (words: Words) => {
    process.exitCode = await run(words);
  });

parse(program);
