import { existsSync } from "node:fs";
import { basename, join, resolve } from "node:path";

import { checkout } from "../shared/checkout";
import { Progress } from "../shared/progress";
import { UserError } from "../shared/user-error";
import { ownPulumi, ownSubscription } from "../recover/own-pulumi";
import { recover, summaryOf } from "../recover/recover";
import { perform, typed } from "./command";

interface Words {
  readonly stack: string;
  readonly configFile?: string;
  readonly copies?: string;
  readonly dryRun: boolean;
}

const hasSettings = (stack: string): boolean =>
  existsSync(join(checkout, `Pulumi.${basename(stack)}.yaml`));

/** The cluster's stack whose images this one is of, which only the program that makes them can preview. */
function clusterOfImages(stack: string): string | undefined {
  const cluster = stack.replace(/-image$/, "");
  return !hasSettings(stack) && cluster !== stack && hasSettings(cluster) ? cluster : undefined;
}

async function run(
  { stack, configFile, copies = join(checkout, ".recover"), dryRun }: Words,
  signal: AbortSignal,
): Promise<number> {
  const cluster = clusterOfImages(stack);
  if (cluster !== undefined) {
    throw new UserError(
      `${stack} is the stack of the images for ${cluster}, which is recovered where it goes on: npm run image -- --stack ${cluster}`,
    );
  }
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
    const settings = configFile === undefined ? "" : ` --config-file ${configFile}`;
    progress.line(`go on with: pulumi up --stack ${stack}${settings}`);
  } else if (refusal === undefined) {
    progress.line("nothing to recover: the state knows all that Azure has of it");
  }
  return refusal === undefined || looked.length > 0 || left.length > 0 ? 0 : 1;
}

perform((signal) => run(typed<Words>().options, signal), 1);
