import { join, resolve } from "node:path";

import { versions } from "../components/versions";
import { install, isInstalled, placesOf } from "../programs/installs";
import { cacheFolder } from "../programs/tools";
import type { Progress } from "../shared/progress";
import { writeRepository } from "./apt-repository";
import { archivePackages } from "./archive-packages";
import { fetchCriDockerd } from "./cri-dockerd";
import { chooseDistribution, debian, type Distribution } from "./distributions";
import { openFolder } from "./folder";
import { ImageStore } from "./image-store";
import { provideImages } from "./images";
import { fetchManifests, type Manifests } from "./manifest-files";
import { neededTools } from "./needed-tools";
import { providePackages } from "./packages";
import { checkPrograms, run } from "./programs";
import type { Absence, Item, Report } from "./report";
import { Sources } from "./sources";
import { Stamps } from "./stamps";
import { together } from "./together";
import { toolOf } from "./tools";
import { wantedImages } from "./wanted-images";

export interface MirrorOptions {
  /** Where the mirror is; one in the cache without it. */
  readonly folder?: string;
  /** What the machines run; without it, what the program's machines run where that can be had. */
  readonly system?: string;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  readonly cache?: string;
}

export interface Mirror {
  readonly folder: string;
  readonly report: Report;
}

/**
 * Fills a folder with all that machines without internet fetch: packages, images, manifests, at the
 * program's versions. What is there already stays; whatever an official source does not give is
 * built.
 */
export async function prepareMirror(options: MirrorOptions): Promise<Mirror> {
  checkPrograms();
  const { cache = cacheFolder(), progress, signal, system } = options;
  const sources = new Sources(signal);
  const distribution = await chooseDistribution(system, sources, (text) => progress.line(text));
  const folder = resolve(options.folder ?? join(cache, "mirror", distribution.name));
  const opened = openFolder(folder);
  try {
    const { notes, drafts } = opened;
    const stamps = new Stamps(notes);
    const filling = { ...options, cache, sources, distribution, folder, notes, stamps, drafts };
    return { folder, report: await fill(filling) };
  } finally {
    opened.release();
  }
}

interface Filling {
  readonly folder: string;
  readonly notes: string;
  readonly drafts: string;
  readonly stamps: Stamps;
  readonly sources: Sources;
  readonly distribution: Distribution;
  readonly cache: string;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

async function fill(filling: Filling): Promise<Report> {
  const { folder, sources, progress, signal } = filling;
  const needed = await neededTools(sources);
  let installed: Promise<void> | undefined;
  const items: Item[] = [];
  const absences: Absence[] = [];
  let manifests: Manifests | undefined;
  const programs = (either: AbortSignal) => {
    const installing = { ...filling, signal: either };
    const all = (installed ??= install(needed, installing));
    return async (binary: string): Promise<string> => {
      await all;
      const tool = toolOf(binary);
      if (!isInstalled(tool, filling.cache)) await install([tool], installing);
      return placesOf(tool, filling.cache)[binary]!;
    };
  };
  await together(signal, [
    async (either) => {
      programs(either);
      await installed;
    },
    (either) =>
      progress.during("packages for machines", async () => {
        items.push(...(await fillRepository({ ...filling, signal: either }, programs(either))));
      }),
    async (either) => {
      manifests = await fetchManifests(join(folder, "manifests"), either);
      const archive = await fetchCriDockerd(join(folder, "cri-dockerd"), either);
      if ("from" in archive) items.push(archive);
      else absences.push(archive);
    },
  ]);
  const placeOf = programs(signal);
  const images = await progress.during("images for machines", async (step) => {
    const list = await kubeadmImages(await placeOf("kubeadm"), signal);
    return provideImages(wantedImages(list, manifests!.texts), {
      ...filling,
      store: new ImageStore(join(folder, "images")),
      placeOf,
      debianPackages: (names) =>
        archivePackages(names, {
          distribution: debian,
          folder: aptFolder(filling, debian),
          signal,
        }),
      say: (what) => step.say(what),
    });
  });
  return {
    items: [...items, ...images.items, ...manifests!.items],
    absences: [...images.absences, ...manifests!.absences, ...absences],
  };
}

const aptFolder = ({ cache }: Filling, { name }: Distribution): string =>
  join(cache, "mirror", `apt-${name}`);

async function fillRepository(
  filling: Filling,
  placeOf: (binary: string) => Promise<string>,
): Promise<readonly Item[]> {
  const { folder, notes, cache, distribution, signal } = filling;
  const { packages, items } = await providePackages({
    ...filling,
    folder: join(notes, "packages"),
    aptFolder: aptFolder(filling, distribution),
    placeOf,
  });
  const keys = join(cache, "mirror", "keys");
  await writeRepository(packages, { folder: join(folder, "apt"), keys, signal });
  return items;
}

const kubeadmImages = async (kubeadm: string, signal: AbortSignal): Promise<string[]> => {
  const flags = ["--kubernetes-version", `v${versions.kubernetes}`];
  return (await run(kubeadm, ["config", "images", "list", ...flags], { signal }))
    .trim()
    .split("\n");
};
