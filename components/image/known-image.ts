import { imageVersionOf } from "../azure/image-offers";
import { stackName } from "../azure/stack-tag";
import { digest } from "../digest";
import { cloudInitText } from "../machine/payload";
import { askBackend } from "../plan/engine";
import type { Settings } from "../settings/settings";

/** The image of a stack: which version it is, and what that has where it is made. */
export interface KnownImage {
  readonly version: string;
  /** Hash over all of which a change asks for another image. */
  readonly madeOf: string;
  /** Lines of first-boot.sh's `image_contents`; undefined for one that is to be made. */
  readonly contents?: string;
  /** Names of the tags that the settings had at the last update. */
  readonly formerTags: readonly string[];
}

interface StackOutputs extends Partial<Pick<KnownImage, "version" | "madeOf" | "contents">> {
  readonly tags?: readonly string[];
}

/** The machine that a version is taken of. */
export const builderName = (version: string): string => `builder-${version.replaceAll(".", "-")}`;

/** Major, minor and patch, each without a leading zero: later ones are larger. */
const versionAt = (now: Date): string =>
  [
    now.getUTCFullYear(),
    (now.getUTCMonth() + 1) * 100 + now.getUTCDate(),
    now.getUTCHours() * 10_000 + now.getUTCMinutes() * 100 + now.getUTCSeconds(),
  ].join(".");

/**
 * The image that the last update that ended well has left, if it is the one that the settings want; else a new one.
 *
 * @param bootData customData of the machine that it would be made of
 */
export async function knownImage(
  settings: Settings,
  bootData: string,
  now = new Date(),
): Promise<KnownImage> {
  const madeOf = digest([bootData, cloudInitText("generalize.sh"), imageVersionOf(settings)]);
  const outputs = await askBackend<StackOutputs>("readStackOutputs", { name: stackName() });
  const formerTags = outputs?.tags ?? [];
  return outputs?.madeOf === madeOf && outputs.version !== undefined
    ? { version: outputs.version, madeOf, contents: outputs.contents, formerTags }
    : { version: versionAt(now), madeOf, formerTags };
}
