import { basename, join, relative, resolve } from "node:path";

import { destroyImages, makeImage, openImageStack } from "../pulumi/image-stack";
import { ownPulumi, ownSubscription } from "../recover/own-pulumi";
import { recover, summaryOf } from "../recover/recover";
import { checkout } from "../shared/checkout";
import { Progress } from "../shared/progress";
import { perform, typed } from "./command";

interface Words {
  readonly stack: string;
  readonly configFile?: string;
  readonly destroy: boolean;
}

async function run(
  { stack: cluster, configFile, destroy }: Words,
  signal: AbortSignal,
): Promise<void> {
  const progress = new Progress();
  const environment = { ...process.env, ZONED_PROGRAM: "image" };
  const pulumi = (args: readonly string[]) => ownPulumi(checkout, signal, environment)(args);
  const config = resolve(configFile ?? join(checkout, `Pulumi.${basename(cluster)}.yaml`));
  const stack = await openImageStack({ cluster, program: checkout, config, pulumi });
  // Who runs it again after a failure knows of no other command for this stack.
  const recovery = await recover({
    ...{ stack: stack.name, pulumi, configFile: config, copies: join(checkout, ".recover") },
    ...{ subscription: ownSubscription, onlyAfterFailure: true, progress, signal },
  });
  for (const line of summaryOf(recovery)) progress.line(line);
  const file = join(checkout, `image.${basename(cluster)}.json`);
  if (destroy) return destroyImages({ stack, file, progress });
  const { image, packages, images } = await makeImage({ stack, file, progress });
  const found = `${Object.keys(packages).length} packages and ${Object.keys(images).length} images`;
  progress.line(`image: ${image}`);
  progress.line(`${found} by version and digest: ${relative(process.cwd(), file)}`);
  progress.line(`new machines of it: pulumi config set image ${image} --stack ${cluster}`);
}

perform((signal) => run(typed<Words>().options, signal));
