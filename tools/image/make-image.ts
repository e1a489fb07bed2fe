import { rmSync } from "node:fs";

import { writeWhole } from "../shared/files";
import type { Progress } from "../shared/progress";
import type { ImageStack } from "./image-stack";

export interface ImageOptions {
  readonly stack: ImageStack;
  /** Where it is written what the image has. */
  readonly file: string;
  readonly progress: Progress;
}

/** A gallery image version, and what it has. */
export interface MadeImage extends Contents {
  /** Azure's id. */
  readonly image: string;
}

/** Makes the image that the settings want, unless it is there, and leaves nothing running. */
export async function makeImage({ stack, file, progress }: ImageOptions): Promise<MadeImage> {
  const up = (what: string, usually: string) => progress.during(what, () => stack.up(), usually);
  await up("making a machine, and an image of it", "25 min");
  // It finds the image made, and takes the machine away; where there was none, it changes nothing.
  await up("taking the machine away", "1 min");
  const { image, contents } = await stack.outputs();
  const made = { image: String(image), ...contentsOf(String(contents)) };
  writeWhole(file, `${JSON.stringify(made, undefined, 2)}\n`);
  return made;
}

/** Deletes the gallery with all its images, the stack's other resources, and the stack. */
export async function destroyImages({ stack, file, progress }: ImageOptions): Promise<void> {
  await progress.during("deleting the gallery and its images", () => stack.remove(), "5 min");
  rmSync(file, { force: true });
}

/** What an image has: versions of packages and programs, and digests of images, by name. */
interface Contents {
  readonly settings: Readonly<Record<string, string>>;
  readonly packages: Readonly<Record<string, string>>;
  readonly programs: Readonly<Record<string, string>>;
  readonly images: Readonly<Record<string, string>>;
}

/** Reads the lines of first-boot.sh's `image_contents`. */
function contentsOf(text: string): Contents {
  const lines = text.split("\n").map((line) => line.split(" "));
  const of = (kind: string) =>
    Object.fromEntries(
      lines.filter(([first]) => first === kind).map(([, name = "", value = ""]) => [name, value]),
    );
  return {
    settings: of("setting"),
    packages: of("package"),
    programs: of("program"),
    images: of("image"),
  };
}
