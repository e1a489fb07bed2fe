import { join, resolve } from "node:path";

import { Command } from "commander";

import { checkout } from "../shared/checkout";
import { Progress } from "../shared/progress";
import { ownPulumi, ownSubscription } from "../stack/recover/own-pulumi";
import { recover, summaryOf } from "../stack/recover/recover";
import { parse, perform } from "./command";

interface Words {
  readonly stack: string;
  readonly configFile?: string;
  readonly copies: string;
  readonly dryRun: boolean;
}

async function run(
  { stack, configFile, copies, dryRun }: Words,
  signal: AbortSignal,
): Promise<number> {
  const progress = new Progress();
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
  for (const line of summaryOf(recovery)) progress.line(line);
  const { looked, adopted, forgotten, failed, left, refusal } = recovery;
  if (dryRun) progress.line("nothing was changed, since --dry-run was given");
  else if ([...adopted, ...forgotten, ...failed, ...left].length > 0) {
    progress.line(`go on with: pulumi up --stack ${stack}`);
  } else if (refusal === undefined) {
    progress.line("nothing to recover: the state knows all that Azure has of it");
  }
  return refusal === undefined || looked.length > 0 || left.length > 0 ? 0 : 1;
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
  .action((words: Words) => perform((signal) => run(words, signal)));

parse(program, 1);
