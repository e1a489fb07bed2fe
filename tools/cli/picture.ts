import { basename } from "node:path";

import { RunError } from "@pulumi/pulumi";

import { getAzureResources, type AzureResources } from "../picture/azure";
import { getClusterAnswer } from "../picture/cluster";
import { pictureOf, summaryOf } from "../picture/model";
import { draw } from "../picture/svg/draw";
import { Progress } from "../shared/progress";
import { UserError } from "../shared/user-error";
import { azureOf } from "./azure-of-stack";
import { clusterOf } from "./cluster-of-stack";
import { perform, typed } from "./command";
import type { StackWords } from "./stack";
import { writeOutput } from "./write-output";

interface Words extends StackWords {
  readonly output?: string;
}

async function run({ output, ...words }: Words, signal: AbortSignal): Promise<void> {
  // A request that is under way is not worth its answer.
  signal.addEventListener("abort", () => setTimeout(() => process.exit(130), 1000).unref());
  const picture = await new Progress(process.stderr).during(
    "looking at Azure and the cluster",
    async () => {
      const { stack, cluster } = await clusterOf(words, signal);
      const seen = await Promise.all([resourcesOf(words, signal), getClusterAnswer(cluster)]);
      return pictureOf({ stack, azure: seen[0], cluster: seen[1] });
    },
  );
  const file = writeOutput(output ?? `${basename(picture.stack)}.svg`, draw(picture));
  process.stdout.write(`stack ${picture.stack}: ${summaryOf(picture)}\n${file}\n`);
}

async function resourcesOf(words: StackWords, signal: AbortSignal): Promise<AzureResources> {
  const { arm, group } = await azureOf(words, signal);
  const resources = await getAzureResources(arm, group).catch((error: unknown) => {
    throw RunError.isInstance(error) ? new UserError(error.message) : error;
  });
  if (resources !== undefined) return resources;
  throw new UserError(`Azure has no ${group}: there is nothing to draw; pulumi up makes it again`);
}

perform((signal) => run(typed<Words>().options, signal), 2);
