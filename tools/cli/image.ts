import { existsSync } from "node:fs";
import { join, relative } from "node:path";

import { destroyImages, type ImageStack, makeImage } from "../image/make-image";
import { ownPulumi } from "../recover/own-pulumi";
import { checkout } from "../shared/checkout";
import { Progress } from "../shared/progress";
import { UserError } from "../shared/user-error";
import { perform, typed } from "./command";

interface Words {
  readonly stack: string;
  readonly destroy: boolean;
}

async function run({ stack: cluster, destroy }: Words, signal: AbortSignal): Promise<void> {
  const progress = new Progress();
  const stack = await stackOfImage(cluster, signal);
  const file = join(checkout, `image.${cluster}.json`);
  if (destroy) return destroyImages({ stack, file, progress });
  const { image, packages, images } = await makeImage({ stack, file, progress });
  const found = `${Object.keys(packages).length} packages and ${Object.keys(images).length} images`;
  progress.line(`image: ${image}`);
  progress.line(`${found} by version and digest: ${relative(process.cwd(), file)}`);
  progress.line(`new machines of it: pulumi config set image ${image} --stack ${cluster}`);
}

/** The stack of its own, by the settings of the cluster's. */
async function stackOfImage(cluster: string, signal: AbortSignal): Promise<ImageStack> {
  const config = join(checkout, `Pulumi.${cluster}.yaml`);
  if (!existsSync(config)) {
    throw new UserError(
      `there is no stack ${cluster}: expected its settings in Pulumi.${cluster}.yaml`,
      2,
    );
  }
  process.env["ZONED_PROGRAM"] = "image";
  const pulumi = ownPulumi(checkout, signal);
  const name = `${cluster}-image`;
  const of = ["--stack", name, "--config-file", config];
  // One that is there already says so.
  const { code, stderr } = await pulumi(["stack", "init", name, "--no-select"]);
  if (code !== 0 && !stderr.includes("already exists")) {
    throw new UserError(`pulumi stack init ${name} ended with ${code}: ${stderr.trim()}`);
  }
  return {
    name,
    up: () => pulumi(["up", "--yes", "--skip-preview", ...of]),
    destroy: () => pulumi(["destroy", "--yes", "--skip-preview", ...of]),
    async outputs() {
      const { stdout } = await pulumi(["stack", "output", "--json", "--stack", name]);
      return JSON.parse(stdout) as Record<string, unknown>;
    },
  };
}

perform((signal) => run(typed<Words>().options, signal));
