import { join, relative } from "node:path";

import { openImageStack } from "../image/image-stack";
import { destroyImages, makeImage } from "../image/make-image";
import { ownPulumi } from "../recover/own-pulumi";
import { checkout } from "../shared/checkout";
import { Progress } from "../shared/progress";
import { perform, typed } from "./command";

interface Words {
  readonly stack: string;
  readonly destroy: boolean;
}

async function run({ stack: cluster, destroy }: Words, signal: AbortSignal): Promise<void> {
  const progress = new Progress();
  const environment = { ...process.env, ZONED_PROGRAM: "image" };
  const stack = await openImageStack({
    ...{ cluster, program: checkout, config: join(checkout, `Pulumi.${cluster}.yaml`) },
    pulumi: (args) => ownPulumi(checkout, signal, environment)(args),
  });
  const file = join(checkout, `image.${cluster}.json`);
  if (destroy) return destroyImages({ stack, file, progress });
  const { image, packages, images } = await makeImage({ stack, file, progress });
  const found = `${Object.keys(packages).length} packages and ${Object.keys(images).length} images`;
  progress.line(`image: ${image}`);
  progress.line(`${found} by version and digest: ${relative(process.cwd(), file)}`);
  progress.line(`new machines of it: pulumi config set image ${image} --stack ${cluster}`);
}

perform((signal) => run(typed<Words>().options, signal));
