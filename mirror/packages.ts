import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { minorOf, versions } from "../components/versions";
import { packageIn } from "./apt-repository";
import { archivePackages, type ExtraSource, type Package } from "./archive-packages";
import { debName, packDeb } from "./deb";
import type { Distribution } from "./distributions";
import { fromKubernetes, kubernetesPackages } from "./kubernetes-packages";
import type { Item } from "./report";
import type { Sources } from "./sources";
import type { Stamps } from "./stamps";
import { toolOf } from "./tools";

/** What the first boot installs from the distribution's own archive. */
export const distributionPackages = [
  ...["ca-certificates", "conntrack", "curl", "ethtool", "ipset", "iptables", "ipvsadm", "jq"],
  ...["nftables", "socat", "containerd", "docker.io"],
];

/** What it installs besides where there is such a package. */
const distributionsOwn: Readonly<Record<string, readonly string[]>> = {
  "debian-13": ["docker-cli"],
};

const kubernetesArchive = `https://pkgs.k8s.io/core:/stable:/v${minorOf(versions.kubernetes)}/deb/`;

export interface PackageOptions {
  readonly distribution: Distribution;
  /** Where packages of our own are kept. */
  readonly folder: string;
  /** Where apt keeps what it fetches. */
  readonly aptFolder: string;
  readonly sources: Sources;
  readonly stamps: Stamps;
  readonly signal: AbortSignal;
  placeOf(binary: string): Promise<string>;
}

export interface Provided {
  readonly packages: readonly Package[];
  readonly items: readonly Item[];
}

/** Whether Kubernetes' own packages can be had, so that none have to be made. */
export const hasKubernetesPackages = (sources: Sources): Promise<boolean> =>
  sources.answers(`${kubernetesArchive}Release.key`);

/** Everything that the first boot installs, with what that depends on. */
export async function providePackages(options: PackageOptions): Promise<Provided> {
  const { distribution, sources, aptFolder, signal } = options;
  const official = await hasKubernetesPackages(sources);
  const depends = kubernetesPackages
    .flatMap((one) => one.depends)
    .filter((name) => !name.startsWith("kube"));
  const names = [
    ...distributionPackages,
    ...(distributionsOwn[distribution.name] ?? []),
    ...(official ? fromKubernetes : depends),
  ];
  const [fromArchive, own] = await Promise.all([
    archivePackages([...new Set(names)], {
      distribution,
      folder: aptFolder,
      extra: official ? await kubernetesSource(aptFolder, signal) : undefined,
      signal,
    }),
    official ? [] : buildAll(options),
  ]);
  const made = own.map((one) => ({
    what: `${one.name} ${one.version}`,
    from: `built from ${modulesOf(one.name)}`,
  }));
  const isKubernetes = ({ name }: Package): boolean => /^(kube|cri-tools)/.test(name);
  const fetched = fromArchive.filter(isKubernetes).map((one) => ({
    what: `${one.name} ${one.version}`,
    from: "fetched from pkgs.k8s.io, by its signature",
  }));
  const rest = fromArchive.filter((one) => !isKubernetes(one)).length;
  return {
    packages: [...fromArchive, ...own],
    items: [
      ...made,
      ...fetched,
      {
        what: `${rest} packages of ${distribution.name}`,
        from: `fetched from ${new URL(distribution.archive).host}, by its signature`,
      },
    ],
  };
}

async function kubernetesSource(folder: string, signal: AbortSignal): Promise<ExtraSource> {
  const response = await fetch(`${kubernetesArchive}Release.key`, { signal });
  const keyFile = join(folder, "kubernetes.asc");
  mkdirSync(folder, { recursive: true });
  await writeFile(keyFile, await response.text());
  return { uri: kubernetesArchive, keyFile };
}

const modulesOf = (name: string): string =>
  name === "kubernetes-cni"
    ? "Go module github.com/containernetworking/plugins"
    : "Go module k8s.io/kubernetes";

async function buildAll(options: PackageOptions): Promise<Package[]> {
  const { folder, stamps, placeOf, signal } = options;
  mkdirSync(folder, { recursive: true });
  const made: Package[] = [];
  for (const recipe of kubernetesPackages) {
    const file = join(folder, debName(recipe));
    const tools = Object.values(recipe.binaries).map((binary) => toolOf(binary).version);
    const key = { recipe, tools };
    if (!existsSync(file) || !stamps.find(recipe.name, key)) {
      const draft = `${file}.new`;
      rmSync(draft, { recursive: true, force: true });
      await packDeb(recipe, `${draft}.deb`, draft, placeOf, signal);
      renameSync(`${draft}.deb`, file);
      rmSync(draft, { recursive: true });
      stamps.write(recipe.name, key, {
        isOfficial: false,
        from: modulesOf(recipe.name),
        result: file,
      });
    }
    made.push(await packageIn(file, signal));
  }
  for (const name of readdirSync(folder)) {
    if (!kubernetesPackages.some((recipe) => debName(recipe) === name)) {
      rmSync(join(folder, name), { recursive: true });
    }
  }
  return made;
}
