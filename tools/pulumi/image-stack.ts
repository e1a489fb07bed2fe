import { existsSync, readFileSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { parse } from "yaml";

import { writeWhole } from "../shared/files";
import type { Progress } from "../shared/progress";
import { UserError } from "../shared/user-error";
import type { Ended } from "./pulumi";

/** The stack of an image, by the pulumi that has its state. */
export interface ImageStack {
  readonly name: string;
  /** Makes the image, or takes away the machine that the last one was made of. */
  up(): Promise<Ended>;
  /** Deletes the images, and what Pulumi has of the stack. */
  remove(): Promise<void>;
  outputs(): Promise<Readonly<Record<string, unknown>>>;
}

interface ImageStackArgs {
  /** The stack of the cluster; Pulumi Cloud's may have their organization before their name. */
  readonly cluster: string;
  /** Its settings, beside the project's Pulumi.yaml or elsewhere. */
  readonly config: string;
  /** The pulumi that has the cluster's state, on the program that makes images. */
  readonly pulumi: (args: readonly string[]) => Promise<Ended>;
  /** Folder of the Pulumi project. */
  readonly program: string;
}

/**
 * A stack of its own, with the settings of the cluster's.
 *
 * @throws UserError when there are none, or pulumi makes no stack
 */
export async function openImageStack(args: ImageStackArgs): Promise<ImageStack> {
  const { cluster, config, pulumi } = args;
  if (!existsSync(config)) {
    throw new UserError(`there is no stack ${cluster}: expected its settings in ${config}`, 2);
  }
  const name = `${cluster}-image`;
  await init(name, args);
  const must = async (...words: string[]): Promise<Ended> => {
    const ended = await pulumi(words);
    if (ended.code === 0) return ended;
    throw failed(words, ended);
  };
  const settings = ["--yes", "--skip-preview", "--stack", name, "--config-file", config];
  return {
    name,
    up: () => must("up", ...settings),
    async remove() {
      await must("destroy", ...settings);
      await must("stack", "rm", name, "--yes");
    },
    async outputs() {
      const { stdout } = await must("stack", "output", "--json", "--stack", name);
      return JSON.parse(stdout) as Record<string, unknown>;
    },
  };
}

/** Makes the stack, unless it is there, whose secrets are encrypted as the cluster's. */
async function init(name: string, { config, program, pulumi }: ImageStackArgs): Promise<void> {
  const { secretsprovider } = (parse(readFileSync(config, "utf8")) ?? {}) as StackFile;
  const words = ["stack", "init", name, "--no-select"];
  if (secretsprovider !== undefined) words.push("--secrets-provider", secretsprovider);
  // pulumi writes one, which nothing reads: the settings are the cluster's.
  const own = join(program, `Pulumi.${basename(name)}.yaml`);
  const wasThere = existsSync(own);
  const ended = await pulumi(words).finally(() => {
    if (!wasThere) rmSync(own, { force: true });
  });
  if (ended.code !== 0 && !ended.stderr.includes("already exists")) throw failed(words, ended);
}

interface StackFile {
  readonly secretsprovider?: string;
}

function failed(words: readonly string[], { code, stdout, stderr }: Ended): UserError {
  const said = [stdout, stderr].map((text) => text.trim()).filter((text) => text !== "");
  return new UserError(
    `pulumi ${words.join(" ")} ended with ${code}:\n${said.join("\n")}\n  Run it again when the cause is fixed: it goes on from here.`,
  );
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
