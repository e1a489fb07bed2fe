import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

import { current, pinned, type Release } from "./releases";

/** How a file's SHA-256 is published beside it. */
export type Published =
  /** A list of lines `<hash>  <file name>`. */
  | { readonly kind: "list"; readonly url: string }
  /** The hash alone. */
  | { readonly kind: "bare"; readonly url: string }
  /** A release as GitHub's API describes it, with a digest for each of its files. */
  | { readonly kind: "release"; readonly url: string };

export interface Download {
  readonly url: string;
  readonly sha256: Published;
  /** Which file of the archive is which binary; without it, the download is the binary itself. */
  readonly members?: Readonly<Record<string, string>>;
  /** The binary that the download is, when it is no archive. */
  readonly binary?: string;
}

/** An image in a registry that anyone may read. */
export interface OfficialImage {
  /** Address of its repository in the registry's API. */
  readonly repository: string;
  /** Its digest; or its tag, whose digest is then what the registry says. */
  readonly reference: string;
}

export interface GoBuild {
  /**
   * Folder below `tools/programs/modules` whose go.mod pins the module and names its packages as tools.
   */
  readonly module: string;
  /** Which of the tools that go.mod names are built; without it, all of them. */
  readonly packages?: readonly string[];
  /** Its package is a test, which is built as a program. */
  readonly isTest?: true;
  readonly ldflags: string;
  /** The name of the only binary, where its package has another. */
  readonly binary?: string;
  /** Files of a Go module that the program reads beside itself. */
  readonly beside?: { readonly module: string; readonly files: readonly string[] };
}

export interface Tool {
  readonly name: string;
  readonly version: string;
  readonly binaries: readonly string[];
  readonly builds: readonly GoBuild[];
  /** How long its build takes on two cores, in words. */
  readonly typical: string;
  /** Official downloads for Linux on x64; none where it is always built. */
  readonly downloads: readonly Download[];
  /** The official image that has its only binary, where it is published in no other way. */
  readonly image?: OfficialImage;
}

export const github = "https://github.com";

function pulumi(): Tool {
  const version = pinned("pulumi", "github.com/pulumi/pulumi/pkg/v3");
  const variable = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version";
  return {
    name: "pulumi",
    version,
    binaries: ["pulumi", "pulumi-language-nodejs"],
    builds: [
      { module: "pulumi", ldflags: `-s -w -X ${variable}=v${version}` },
      { module: "language-nodejs", ldflags: "-s -w" },
    ],
    typical: "8 min",
    downloads: [
      {
        url: `https://get.pulumi.com/releases/sdk/pulumi-v${version}-linux-x64.tar.gz`,
        sha256: {
          kind: "list",
          url: `${github}/pulumi/pulumi/releases/download/v${version}/pulumi-${version}-checksums.txt`,
        },
        members: {
          pulumi: "pulumi/pulumi",
          "pulumi-language-nodejs": "pulumi/pulumi-language-nodejs",
        },
      },
    ],
  };
}

/** One part of Kubernetes' own release: some of its programs, which are built and fetched alike. */
const ofKubernetes =
  (name: string, binaries: readonly string[], typical: string) =>
  ({ version, sources }: Release): Tool => {
    const [major, minor] = version.split(".");
    const base = "k8s.io/component-base/version";
    return {
      name,
      version,
      binaries,
      builds: [
        {
          module: `${sources}kubernetes`,
          packages: binaries.map((binary) => `k8s.io/kubernetes/cmd/${binary}`),
          ldflags: `-s -w -X ${base}.gitVersion=v${version} -X ${base}.gitMajor=${major} -X ${base}.gitMinor=${minor}`,
        },
      ],
      typical,
      downloads: binaries.map((binary) => {
        const url = `https://dl.k8s.io/release/v${version}/bin/linux/amd64/${binary}`;
        return { url, binary, sha256: { kind: "bare", url: `${url}.sha256` } };
      }),
    };
  };

export const kubernetesToolOf = ofKubernetes(
  "kubernetes",
  ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubeadm", "kubectl"],
  "9 min",
);

export const kubernetesTool = kubernetesToolOf(current);

interface OfModule {
  readonly name: string;
  /** Folder below `tools/programs/modules`; by default of the tool's name. */
  readonly folder?: string;
  readonly module: string;
  readonly binaries?: readonly string[];
  readonly typical: string;
  readonly build?: Partial<GoBuild>;
  /** Where the same version is published, as an archive. */
  readonly archive?: (version: string) => string;
  /** The list of hashes that lies beside it; by default its name with `.sha256`. */
  readonly sums?: string;
  /** Where a binary is in the archive, if not at its top. */
  readonly member?: (binary: string, version: string) => string;
}

/** A tool of one Go module, in the module's version. */
export function ofModule({ name, folder = name, module, typical, ...of }: OfModule): Tool {
  const { binaries = [name], build, sums, member = (binary) => binary } = of;
  const version = pinned(folder, module);
  const url = of.archive?.(version);
  return {
    ...{ name, version, binaries, typical },
    builds: [{ module: folder, ldflags: "-s -w", ...build }],
    downloads:
      url === undefined
        ? []
        : [
            {
              url,
              sha256: { kind: "list", url: sums ? new URL(sums, url).href : `${url}.sha256` },
              members: Object.fromEntries(
                binaries.map((binary) => [binary, member(binary, version)]),
              ),
            },
          ],
  };
}

const ofEtcd = (
  name: string,
  binaries: readonly string[],
  build: Partial<GoBuild>,
  { sources }: Release,
): Tool =>
  ofModule({
    ...{ name, binaries, build },
    ...{ folder: `${sources}etcd`, module: "go.etcd.io/etcd/server/v3", typical: "1 min" },
    archive: (version) =>
      `${github}/etcd-io/etcd/releases/download/v${version}/etcd-v${version}-linux-amd64.tar.gz`,
    sums: "SHA256SUMS",
    member: (binary, version) => `etcd-v${version}-linux-amd64/${binary}`,
  });

export const etcdToolOf = (release: Release): Tool =>
  ofEtcd("etcd", ["etcd"], { packages: ["go.etcd.io/etcd/server/v3"], binary: "etcd" }, release);

/** etcd's two command lines, for one that runs and for its files. */
export const etcdctlToolOf = (release: Release): Tool => {
  const packages = ["go.etcd.io/etcd/etcdctl/v3", "go.etcd.io/etcd/etcdutl/v3"];
  return ofEtcd("etcdctl", ["etcdctl", "etcdutl"], { packages }, release);
};

const etcdTool = etcdToolOf(current);

function kwok(): Tool {
  const version = pinned("kwok", "sigs.k8s.io/kwok");
  return {
    name: "kwok",
    version,
    binaries: ["kwok"],
    builds: [{ module: "kwok", ldflags: "-s -w" }],
    typical: "1 min",
    downloads: [
      {
        url: `${github}/kubernetes-sigs/kwok/releases/download/v${version}/kwok-linux-amd64`,
        sha256: {
          kind: "release",
          url: `https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v${version}`,
        },
        binary: "kwok",
      },
    ],
  };
}

/** The engine apart, since the user's own will do when it is new enough. */
export const engineTool = pulumi();

/** What a rehearsal with simulated machines runs besides the engine; the longest build first. */
export const clusterTools: readonly Tool[] = [
  kubernetesTool,
  etcdTool,
  etcdctlToolOf(current),
  kwok(),
];

/**
 * Where machines are real they bring their control plane themselves, and only kubectl is run here.
 */
export const kubectlTools: readonly Tool[] = [kubernetesTool];

/** What runs on every real node, and no simulated one. */
export const nodeToolOf = ofKubernetes("kubernetes-node", ["kubelet", "kube-proxy"], "3 min");

export const nodeTool = nodeToolOf(current);

/** Where the tools are kept: outside the working tree, shared by all of them. */
export const cacheFolder = (env: NodeJS.ProcessEnv = process.env): string =>
  join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "zoned");

interface PluginRelease {
  readonly name: string;
  /** What comes before the program's name in its archive. */
  readonly prefix: string;
}

/** All but that of Kubernetes are downloaded or not to be had: their sources need more than Go to build. */
function plugin({ name, prefix }: PluginRelease): Tool {
  const manifest = require.resolve(`@pulumi/${name}/package.json`);
  const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
  const program = `pulumi-resource-${name}`;
  const repository = `pulumi/pulumi-${name}`;
  return {
    name: program,
    version,
    binaries: [program],
    builds: name === "kubernetes" ? [kubernetesBuild(version)] : [],
    typical: "20 min",
    downloads: [
      {
        url: `${github}/${repository}/releases/download/v${version}/${program}-v${version}-linux-amd64.tar.gz`,
        // The list of hashes beside it has SHA-1.
        sha256: {
          kind: "release",
          url: `https://api.github.com/repos/${repository}/releases/tags/v${version}`,
        },
        members: { [program]: `${prefix}${program}` },
      },
    ],
  };
}

/**
 * Its Go module has the two files that upstream's own main embeds, and not the copies that it does
 * embed. The module's newest version is older than the npm package; what it says of itself is the package's.
 */
const kubernetesBuild = (version: string): GoBuild => ({
  module: "plugin-kubernetes",
  packages: ["./pulumi-resource-kubernetes"],
  ldflags: `-s -w -X main.version=${version}`,
  beside: {
    module: "github.com/pulumi/pulumi-kubernetes/provider/v4",
    files: ["schema.json", "terraform-mapping.json"].map(
      (file) => `cmd/pulumi-resource-kubernetes/${file}`,
    ),
  },
});

/** The official plugins of the program, in the versions that its packages ask for. */
export const pluginTools: readonly Tool[] = [
  { name: "azure-native", prefix: "." },
  { name: "tls", prefix: "." },
  { name: "kubernetes", prefix: "" },
].map(plugin);
