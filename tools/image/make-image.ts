import { writeWhole } from "../shared/files";
import type { Progress } from "../shared/progress";
import { UserError } from "../shared/user-error";
import { type Contents, contentsOf } from "./contents";

/** A command of pulumi, as far as it is read here. */
interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The stack of an image, by the pulumi that has its state. */
export interface ImageStack {
  readonly name: string;
  up(): Promise<Ended>;
  destroy(): Promise<Ended>;
  outputs(): Promise<Readonly<Record<string, unknown>>>;
}

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
  const up = (what: string, usually: string) =>
    progress.during(what, async () => must(await stack.up(), stack), usually);
  await up("making a machine, and an image of it", "25 min");
  // It finds the image made, and takes the machine away; where there was none, it changes nothing.
  await up("taking the machine away", "1 min");
  const { image, contents } = await stack.outputs();
  const made = { image: String(image), ...contentsOf(String(contents)) };
  writeWhole(file, `${JSON.stringify(made, undefined, 2)}\n`);
  return made;
}

/** Deletes the gallery with all its images, and the stack's other resources. */
export async function destroyImages({ stack, progress }: ImageOptions): Promise<void> {
  await progress.during(
    "deleting the gallery and its images",
    async () => must(await stack.destroy(), stack),
    "5 min",
  );
}

function must({ code, stdout, stderr }: Ended, { name }: ImageStack): void {
  if (code === 0) return;
  const said = [stdout, stderr].map((text) => text.trim()).filter((text) => text !== "");
  throw new UserError(
    `pulumi ended with ${code} on stack ${name}:\n${said.join("\n")}\n  Run it again when the cause is fixed: it goes on from here.`,
  );
}
