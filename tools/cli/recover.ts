import { join, resolve } from "node:path";

import { checkout } from "../shared/checkout";
import { Progress } from "../shared/progress";
import { ownPulumi, ownSubscription } from "../recover/own-pulumi";
import { recover, summaryOf } from "../recover/recover";
import { perform, typed } from "./command";

interface Words {
  readonly stack: string;
  readonly configFile?: string;
  readonly copies?: string;
  readonly dryRun: boolean;
}

async function run(
  { stack, configFile, copies = join(checkout, ".recover"), dryRun }: Words,
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

perform((signal) => run(typed<Words>().options, signal), 1);
