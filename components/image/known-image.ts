import * as pulumi from "@pulumi/pulumi";

import { imageVersionOf } from "../azure/image-offers";
import { type Shown, shownAs } from "../azure/shown";
import { stackName } from "../azure/stack-tag";
import { digest } from "../digest";
import { cloudInitText } from "../machine/payload";
import { askBackend } from "../plan/engine";
import type { Settings } from "../settings/settings";
import { definitionName, galleryName } from "./image-gallery";

/** The image of a stack: which version it is, and what that has where it is made. */
export interface KnownImage {
  readonly version: string;
  /** Hash over all of which a change asks for another image. */
  readonly madeOf: string;
  /** Lines of first-boot.sh's `image_contents`; undefined for one that is to be made. */
  readonly contents?: string;
  /** Names of the tags that the settings had at the last update. */
  readonly formerTags: readonly string[];
  /** What Azure shows of it, of its gallery and of their group. */
  readonly shown: Shown;
}

interface StackOutputs extends Partial<Pick<KnownImage, "version" | "madeOf" | "contents">> {
  readonly tags?: readonly string[];
}

/** Major, minor and patch, each without a leading zero: later ones are larger. */
const versionAt = (now: Date): string =>
  [
    now.getUTCFullYear(),
    (now.getUTCMonth() + 1) * 100 + now.getUTCDate(),
    now.getUTCHours() * 10_000 + now.getUTCMinutes() * 100 + now.getUTCSeconds(),
  ].join(".");

/**
 * The image that the last update that ended well has left, if it is the one that the settings want, and is there; else
 * a new one.
 *
 * @param bootData customData of the machine that it would be made of
 * @param show what Azure shows of a version, of the gallery and of their group
 * @throws RunError where there has been a gallery and is none
 */
export async function knownImage(
  settings: Settings,
  bootData: string,
  show: (version: string) => Promise<Shown>,
  now = new Date(),
): Promise<KnownImage> {
  const madeOf = digest([bootData, cloudInitText("generalize.sh"), imageVersionOf(settings)]);
  const outputs = await askBackend<StackOutputs>("readStackOutputs", { name: stackName() });
  const formerTags = outputs?.tags ?? [];
  const version = (outputs?.madeOf === madeOf && outputs.version) || versionAt(now);
  const shown = await show(version);
  const isThere = (type: string, name: string) =>
    shown.has(shownAs(`azure-native:compute:${type}`, name));
  if (outputs?.version !== undefined && !isThere("GalleryImage", definitionName)) {
    const stack = pulumi.getStack();
    throw new pulumi.RunError(
      `Azure has no gallery ${galleryName(settings)} with a definition ${definitionName}, and stack ${stack} has made an image in one: it was deleted, or ` +
        "clusterName or resourceGroup is another now. Have the stack forget it, with what is left of it, and run this again: " +
        `npm run image -- --stack ${stack.replace(/-image$/, "")} --destroy`,
    );
  }
  return isThere("GalleryImageVersion", version)
    ? { version, madeOf, contents: outputs?.contents, formerTags, shown }
    : { version: versionAt(now), madeOf, formerTags, shown };
}
