import { hash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

import { minorOf } from "../../../components/versions";
import { ask, NoAnswer } from "../../programs/downloads";
import { UserError } from "../../shared/user-error";
import { packageIn } from "./apt-repository";
import {
  type ArchiveOptions,
  archivePackages,
  type ExtraSource,
  type Package,
} from "./archive-packages";
import type { Distribution, Item, Sources } from "../sources";
import {
  debName,
  fromKubernetes,
  kubeletDepends,
  kubernetesPackages,
  packDeb,
} from "./kubernetes-packages";
import { locate } from "../mirrored-programs";

/** What the first boot installs from the distribution's own archive. */
export const distributionPackages = [
  ...["ca-certificates", "conntrack", "curl", "ethtool", "ipset", "iptables", "ipvsadm", "jq"],
  ...["nftables", "socat", "containerd", "docker.io"],
];

/** What it installs where the archive has it. */
export const optionalPackages = ["azure-vm-utils"];

/** Packages that the first boot installs on one distribution only. */
const distributionsOwn: Readonly<Record<string, readonly string[]>> = {
  "debian-13": ["docker-cli"],
};

/** pkgs.k8s.io has one repository per minor version. */
const archiveOf = (version: string): string =>
  `https://pkgs.k8s.io/core:/stable:/v${minorOf(version)}/deb/`;

export interface PackageOptions {
  /** The Kubernetes versions that machines may install. */
  readonly kubernetes: readonly string[];
  readonly distribution: Distribution;
  /** Where packages that are built here are kept. */
  readonly folder: string;
  /** Where apt keeps what it fetches. */
  readonly aptFolder: string;
  readonly sources: Sources;
  readonly signal: AbortSignal;
  pathOf(binary: string): Promise<string>;
}

export interface Provided {
  readonly packages: readonly Package[];
  readonly items: readonly Item[];
}

/** Whether pkgs.k8s.io has packages of all these versions and answers; if not, they are built. */
export async function hasKubernetesPackages(
  sources: Sources,
  versions: readonly string[],
): Promise<boolean> {
  const asked = versions.map((version) => sources.answers(`${archiveOf(version)}Release.key`));
  return (await Promise.all(asked)).every(Boolean);
}

/** The packages that the first boot installs, with their dependencies. */
export async function providePackages(options: PackageOptions): Promise<Provided> {
  const { distribution, sources, kubernetes } = options;
  const official = await hasKubernetesPackages(sources, kubernetes);
  const names = [...distributionPackages, ...(distributionsOwn[distribution.name] ?? [])];
  const [fromArchive, own] = await Promise.all([
    official
      ? fetchAll(names, options)
      : archivePackages([...new Set([...names, ...kubeletDepends])], fetching(options)),
    official ? [] : buildPackages(options),
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

const fetching = ({ distribution, aptFolder, signal }: PackageOptions): ArchiveOptions => ({
  distribution,
  folder: aptFolder,
  optional: optionalPackages,
  signal,
});

/** One Kubernetes version at a time, since apt chooses one version of each package. */
async function fetchAll(
  names: readonly string[],
  options: PackageOptions,
): Promise<readonly Package[]> {
  const all = new Map<string, Package>();
  for (const version of options.kubernetes) {
    const extra = await kubernetesSource(version, options);
    const wanted = [...names, ...fromKubernetes(version)];
    for (const one of await archivePackages(wanted, { ...fetching(options), extra })) {
      all.set(`${one.name} ${one.version}`, one);
    }
  }
  return [...all.values()];
}

async function kubernetesSource(
  version: string,
  { aptFolder: folder, signal }: PackageOptions,
): Promise<ExtraSource> {
  const archive = archiveOf(version);
  const key = await ask(`${archive}Release.key`, {}, signal, keyIn).catch((error: unknown) => {
    if (!(error instanceof NoAnswer)) throw error;
    throw new UserError(
      `the key that Kubernetes' packages are signed by cannot be had: ${error.message}; run this again, which goes on`,
    );
  });
  const keyFile = join(folder, "kubernetes.asc");
  mkdirSync(folder, { recursive: true });
  await writeFile(keyFile, key);
  return { uri: archive, keyFile };
}

/** apt would only say of any other text that the archive is not signed. */
async function keyIn(response: Response): Promise<string> {
  const text = await response.text();
  if (!text.includes("BEGIN PGP PUBLIC KEY BLOCK")) throw new Error("answered something else");
  return text;
}

const ownModules: Readonly<Record<string, string>> = {
  "kubernetes-cni": "github.com/containernetworking/plugins",
  "cri-tools": "sigs.k8s.io/cri-tools",
};

const modulesOf = (name: string): string => `Go module ${ownModules[name] ?? "k8s.io/kubernetes"}`;

/** Builds what pkgs.k8s.io has; each package has a folder named by a digest of its inputs. */
export async function buildPackages({
  folder,
  pathOf,
  signal,
  kubernetes,
}: Pick<PackageOptions, "folder" | "pathOf" | "signal" | "kubernetes">): Promise<Package[]> {
  mkdirSync(folder, { recursive: true });
  const made = new Map<string, Package>();
  for (const recipe of kubernetesPackages(kubernetes)) {
    const tools = Object.values(recipe.binaries).map((one) => locate(one).tool.version);
    const inputs = hash("sha256", JSON.stringify([recipe, tools]));
    const file = join(folder, inputs, debName(recipe));
    if (!existsSync(file)) {
      const draft = `${dirname(file)}.new`;
      rmSync(draft, { recursive: true, force: true });
      await packDeb(recipe, join(draft, debName(recipe)), join(draft, "tree"), pathOf, signal);
      rmSync(join(draft, "tree"), { recursive: true });
      renameSync(draft, dirname(file));
    }
    made.set(inputs, await packageIn(file, signal));
  }
  for (const name of readdirSync(folder)) {
    if (!made.has(name)) rmSync(join(folder, name), { recursive: true });
  }
  return [...made.values()];
}
