import { join, resolve } from "node:path";

import { minorFor, versions } from "../../components/versions";
import { forMirror, requireCommands } from "../programs/debian";
import { install, isInstalled, placesOf } from "../programs/installs";
import { current, releaseOf } from "../programs/releases";
import { cacheFolder, kubernetesToolOf, type Tool } from "../programs/tools";
import type { Progress } from "../shared/progress";
import { writeRepository } from "./packages/apt-repository";
import { archivePackages } from "./packages/archive-packages";
import {
  chooseDistribution,
  debian,
  type Distribution,
  type Item,
  type Missing,
  type Report,
  Sources,
  ubuntu,
} from "./sources";
import { fetchManifests, isMirrorFor, type Manifests, openFolder } from "./mirror-folder";
import { ImageLayout } from "./images/image-layout";
import { provideImages, registryAddress } from "./images/provide-images";
import { hasKubernetesPackages, providePackages } from "./packages/provide-packages";
import { fetchArchive, releaseArchives } from "./packages/release-archives";
import { run } from "../shared/run";
import { runConcurrently } from "../shared/concurrency";
import {
  locate,
  programsInImages,
  programsInPackages,
  programsOfRelease,
  versionedName,
} from "./mirrored-programs";
import { wantedImages } from "./images/wanted-images";

export interface MirrorOptions {
  /** The mirror's folder; by default one in the cache. */
  readonly folder?: string;
  /** The machines' distribution; by default Ubuntu if its archive answers, else Debian. */
  readonly system?: string;
  /** The Kubernetes versions that it has; by default the program's. */
  readonly kubernetes?: readonly string[];
  /**
   * Whether it has the images of Azure's cloud provider, whose programs take long to build.
   *
   * @default true
   */
  readonly cloudProvider?: boolean;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  readonly cache?: string;
}

export interface Mirror {
  readonly folder: string;
  /** Each version's images, as its kubeadm names them. */
  readonly images: Readonly<Record<string, readonly string[]>>;
  readonly report: Report;
}

/**
 * Fills a folder with all that machines without internet access download: packages, images and
 * manifests in the program's versions. It downloads only what is not there yet, and builds what no
 * official source provides.
 */
export async function prepareMirror(options: MirrorOptions): Promise<Mirror> {
  requireCommands(forMirror);
  const { cache = cacheFolder(), progress, signal, system, cloudProvider = true } = options;
  const kubernetes = [...new Set(options.kubernetes ?? [versions.kubernetes])];
  const sources = new Sources(signal);
  // A folder for each choice, since a mirror removes what does not belong to it.
  const others = kubernetes.filter((version) => version !== versions.kubernetes);
  const less = cloudProvider ? [] : ["without-cloud-provider"];
  const folderFor = ({ name }: Distribution) =>
    resolve(options.folder ?? join(cache, "mirror", [name, ...others, ...less].join("-")));
  const distribution = await chooseDistribution(
    system,
    sources,
    (text) => progress.line(text),
    isMirrorFor(ubuntu.name, folderFor(ubuntu)),
  );
  const folder = folderFor(distribution);
  const opened = openFolder(folder, distribution.name);
  try {
    const { state, drafts } = opened;
    const at = { cache, folder, state, drafts };
    const choice = { kubernetes, cloudProvider, sources, distribution };
    return { folder, ...(await fill({ ...options, ...at, ...choice })) };
  } finally {
    opened.release();
  }
}

interface Filling {
  readonly folder: string;
  readonly kubernetes: readonly string[];
  readonly cloudProvider: boolean;
  readonly state: string;
  readonly drafts: string;
  readonly sources: Sources;
  readonly distribution: Distribution;
  readonly cache: string;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

async function fill(filling: Filling): Promise<Omit<Mirror, "folder">> {
  const { folder, kubernetes, cloudProvider, sources, progress, signal } = filling;
  const needed = await neededPrograms(sources, kubernetes, cloudProvider);
  let installed: Promise<void> | undefined;
  const items: Item[] = [];
  const missing: Missing[] = [];
  let manifests: Manifests | undefined;
  const programs = (either: AbortSignal) => {
    const installing = { ...filling, signal: either };
    const all = (installed ??= install(needed, installing));
    return async (program: string): Promise<string> => {
      await all;
      const { tool, binary } = locate(program);
      if (!isInstalled(tool, filling.cache)) await install([tool], installing);
      return placesOf(tool, filling.cache)[binary]!;
    };
  };
  await runConcurrently(signal, [
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
      // Azure's programs take long to build.
      const versions = cloudProvider ? kubernetes : [];
      for (const [name, archives] of Object.entries(releaseArchives(versions))) {
        for (const one of archives) {
          const archive = await fetchArchive(one, join(folder, name), programs(either), either);
          if ("from" in archive) items.push(archive);
          else missing.push(archive);
        }
      }
    },
  ]);
  const pathOf = programs(signal);
  const images: Record<string, string[]> = {};
  for (const version of kubernetes) {
    const kubeadm = await pathOf(versionedName("kubeadm", releaseOf(version)));
    images[version] = await kubeadmImages(kubeadm, version, signal);
  }
  const wanted = wantedImages(kubernetes, Object.values(images).flat(), manifests!.texts).filter(
    ({ part }) => cloudProvider || part !== "cloud provider",
  );
  const provided = await progress.during("images for machines", (step) =>
    provideImages(wanted, {
      ...filling,
      layout: new ImageLayout(join(folder, "images")),
      pathOf,
      debianPackages: (names) =>
        archivePackages(names, {
          distribution: debian,
          folder: aptFolder(filling, debian),
          signal,
        }),
      onImage: (name) => step.update(name),
    }),
  );
  const report = {
    items: [...items, ...provided.items, ...manifests!.items],
    missing: [...provided.missing, ...manifests!.missing, ...missing],
  };
  return { images, report };
}

const aptFolder = ({ cache }: Filling, { name }: Distribution): string =>
  join(cache, "mirror", `apt-${name}`);

async function fillRepository(
  filling: Filling,
  pathOf: (binary: string) => Promise<string>,
): Promise<readonly Item[]> {
  const { folder, state: made, cache, distribution, signal } = filling;
  const { packages, items } = await providePackages({
    ...filling,
    folder: join(made, "packages"),
    aptFolder: aptFolder(filling, distribution),
    pathOf,
  });
  const keys = join(cache, "mirror", "keys");
  await writeRepository(packages, { folder: join(folder, "apt"), keys, signal });
  return items;
}

const kubeadmImages = async (
  kubeadm: string,
  version: string,
  signal: AbortSignal,
): Promise<string[]> => {
  const flags = ["--kubernetes-version", `v${version}`];
  const { etcd } = minorFor(version);
  return (await run([kubeadm, "config", "images", "list", ...flags], { signal }))
    .trim()
    .split("\n")
    .map((image) => (etcd === undefined ? image : image.replace(/(?<=\/etcd:).+/, etcd)));
};

/** Programs to install first: kubeadm, which names the images, and those of all that is built. */
export async function neededPrograms(
  sources: Sources,
  kubernetes: readonly string[],
  cloudProvider = true,
): Promise<Tool[]> {
  const needed = kubernetes.map((version) => kubernetesToolOf(releaseOf(version)));
  const others = kubernetes.filter((version) => version !== current.version);
  const ofOthers = others.flatMap(programsOfRelease);
  for (const [registry, tools] of Object.entries(programsInImages)) {
    if (registry === "mcr.microsoft.com" && !cloudProvider) continue;
    if (await sources.answers(registryAddress(registry))) continue;
    needed.push(...tools, ...(registry === "registry.k8s.io" ? ofOthers : []));
  }
  if (!(await hasKubernetesPackages(sources, kubernetes)))
    needed.push(...programsInPackages, ...ofOthers);
  const last = (tool: Tool): number => Number(tool.name === "kubernetes-node");
  // It shares most packages with kubernetes, which are in Go's cache by then.
  const each = new Map(needed.map((tool) => [`${tool.name} ${tool.version}`, tool]));
  return [...each.values()].sort((a, b) => last(a) - last(b));
}
