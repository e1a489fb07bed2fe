import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

import { ImageLayout, nameOf } from "../../../../mirror/images/image-layout";
import type { Mirror } from "../../../../mirror/mirror";
import type { InstallOptions } from "../../../../programs/installs";
import { cacheFolder } from "../../../../programs/tools";
import { Interrupted, messageOf, UserError } from "../../../../shared/user-error";
import { run } from "../../../../shared/run";
import {
  debianArchive,
  early,
  finishing,
  installKubernetes,
  late,
  packages,
  release,
} from "./debian";

/** What machines boot from. */
export interface BaseImage {
  readonly disk: string;
  readonly kernel: string;
  readonly initrd: string;
}

/** More than a machine of the rehearsal ever fills; the file is sparse. */
const diskSize = "30G";

/** Short, and another as soon as one text is. */
export const digest = (texts: readonly (string | Buffer)[]): string => {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(text).update("\0");
  return hash.digest("hex").slice(0, 12);
};

/** Files that name everything that a mirror has for the image. */
const contentsOf = (mirror: string): string[] => [
  join(mirror, "apt", "Packages"),
  join(mirror, "images", "index.json"),
];

/** What went wrong, with what it takes. */
function imageError(error: unknown): Error {
  if (error instanceof Interrupted || error instanceof UserError) return error;
  return new UserError(
    `the machines' base image could not be made: ${messageOf(error)}\n` +
      "  It takes mmdebstrap, a way to Debian's packages, and about 5 GB in the cache folder.",
  );
}

/** The system without anything of Kubernetes, as an archive. */
export async function prepareSystem(options: InstallOptions): Promise<string> {
  const { cache = cacheFolder(), progress, signal } = options;
  mkdirSync(cache, { recursive: true });
  const recipe = [release, packages.join(" "), JSON.stringify([early, late]), finishing];
  const archive = join(cache, `debian-${release}-${digest(recipe)}.tar`);
  if (existsSync(archive)) return archive;
  const draft = `${archive}.draft.tar`;
  const hooks = mkdtempSync(join(cache, ".hooks-"));
  const hook = (name: string, files: typeof early, commands: string): string => {
    const folder = join(hooks, name);
    for (const { path, text } of files) {
      mkdirSync(join(folder, dirname(path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    const script = join(hooks, `${name}.sh`);
    const body = `#!/bin/sh\nset -e\ncp -r ${folder}/. "$1/"\nchroot "$1" sh -ec '${commands}'\n`;
    writeFileSync(script, body, { mode: 0o755 });
    return script;
  };
  try {
    await progress.during(
      `making a base image of Debian ${release}`,
      async (step) =>
        run(
          [
            ...["mmdebstrap", "--variant=apt", `--include=${packages.join(",")}`],
            ...[
              "--dpkgopt=path-exclude=/usr/share/man/*",
              "--dpkgopt=path-exclude=/usr/share/doc/*",
            ],
            ...["--dpkgopt=path-exclude=/usr/share/locale/*", "--format=tar"],
            `--essential-hook=${hook("early", early, "true")} "$1"`,
            `--customize-hook=${hook("late", late, finishing)} "$1"`,
            ...[release, draft, await debianArchive()],
          ],
          { signal, onLine: step.update },
        ),
      "2 min",
    );
    renameSync(draft, archive);
    return archive;
  } catch (error) {
    throw imageError(error);
  } finally {
    rmSync(draft, { force: true });
    rmSync(hooks, { recursive: true, force: true });
  }
}

/**
 * What of the mirror's images a machine begins without: those of other Kubernetes versions, which it fetches when it
 * is upgraded, and all that are not kubeadm's where it pulls the add-ons' itself, as one of Ubuntu's image does.
 */
export function lacking(
  { folder, images }: Pick<Mirror, "folder" | "images">,
  kubernetes: string,
  pullsAddOns = false,
): string[] {
  const own = new Set(images[kubernetes]);
  const all = pullsAddOns
    ? new ImageLayout(join(folder, "images")).images.map(nameOf)
    : Object.values(images).flat();
  return [...new Set(all.filter((image) => !own.has(image)))];
}

interface Disk {
  readonly system: string;
  readonly mirror: Mirror;
  /** The Kubernetes version that is installed on it. */
  readonly kubernetes: string;
  readonly leftOut: readonly string[];
  readonly folder: string;
}

/** The disk that all machines start from, with its kernel beside it, made once for its contents. */
export async function prepareBaseImage(
  system: string,
  mirror: Mirror,
  kubernetes: string,
  options: InstallOptions & { readonly pullsAddOns?: boolean },
): Promise<BaseImage> {
  const cache = options.cache ?? cacheFolder();
  try {
    const contents = contentsOf(mirror.folder).map((path) => readFileSync(path));
    const leftOut = lacking(mirror, kubernetes, options.pullsAddOns);
    const recipe = [system, installKubernetes, kubernetes, diskSize, ...contents, ...leftOut];
    const folder = join(cache, `base-${digest(recipe)}`);
    if (!existsSync(folder))
      await makeDisk({ system, mirror, kubernetes, leftOut, folder }, options);
    return {
      disk: join(folder, "disk"),
      kernel: join(folder, "vmlinuz"),
      initrd: join(folder, "initrd"),
    };
  } catch (error) {
    throw imageError(error);
  }
}

/** What a machine is started with besides its disk. */
const bootFiles = [
  ["vmlinuz", /^vmlinuz-/],
  ["initrd", /^initrd\.img-/],
] as const;

/** Copies a system's kernel and first stage out of it, as `vmlinuz` and `initrd`. */
export function copyBootFiles(root: string, folder: string): void {
  for (const [name, pattern] of bootFiles) {
    const found = readdirSync(join(root, "boot")).find((file) => pattern.test(file));
    if (found === undefined) throw new Error(`the system has no /boot/${name}`);
    copyFileSync(join(root, "boot", found), join(folder, name));
  }
}

/** Puts Kubernetes' packages and images into the system, natively, and makes a disk of it. */
async function makeDisk(
  { system, mirror, kubernetes, leftOut, folder }: Disk,
  { progress, signal }: InstallOptions,
): Promise<void> {
  const draft = `${folder}.draft`;
  const root = join(draft, "root");
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(root, { recursive: true });
  try {
    await progress.during(
      "putting Kubernetes' packages and images into the base image",
      async (step) => {
        step.update("unpacking the system");
        await run(["tar", "--extract", "--numeric-owner", "--file", system, "--directory", root], {
          signal,
        });
        step.update("installing and importing");
        const inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-ec"];
        const script = [...inside, installKubernetes, "install-kubernetes"];
        await run([...script, root, mirror.folder, kubernetes, ...leftOut], {
          signal,
          onLine: step.update,
        });
        copyBootFiles(root, draft);
        step.update("making the disk");
        await run(
          [
            "mke2fs",
            "-q",
            "-t",
            "ext4",
            "-L",
            "root",
            "-m",
            "0",
            "-d",
            root,
            join(draft, "disk"),
            diskSize,
          ],
          { signal },
        );
      },
      "1 min",
    );
    rmSync(root, { recursive: true, force: true });
    if (statSync(join(draft, "disk")).size === 0) throw new Error("its disk is empty");
    renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
