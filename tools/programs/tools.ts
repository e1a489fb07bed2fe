import { homedir } from "node:os";
import { join } from "node:path";

import { pinned } from "./pinned";
import { current, type Release } from "./releases";

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

/** Programs of etcd's release. */
function ofEtcd(
  name: string,
  binaries: readonly string[],
  { sources }: Release,
): Omit<Tool, "builds"> {
  const version = pinned(`${sources}etcd`, "go.etcd.io/etcd/server/v3");
  const release = `${github}/etcd-io/etcd/releases/download/v${version}`;
  const archive = `etcd-v${version}-linux-amd64`;
  return {
    name,
    version,
    binaries,
    typical: "1 min",
    downloads: [
      {
        url: `${release}/${archive}.tar.gz`,
        sha256: { kind: "list", url: `${release}/SHA256SUMS` },
        members: Object.fromEntries(binaries.map((binary) => [binary, `${archive}/${binary}`])),
      },
    ],
  };
}

export const etcdToolOf = (release: Release): Tool => ({
  ...ofEtcd("etcd", ["etcd"], release),
  builds: [
    {
      module: `${release.sources}etcd`,
      packages: ["go.etcd.io/etcd/server/v3"],
      ldflags: "-s -w",
      binary: "etcd",
    },
  ],
});

/** etcd's two command lines, for one that runs and for its files. */
export const etcdctlToolOf = (release: Release): Tool => ({
  ...ofEtcd("etcdctl", ["etcdctl", "etcdutl"], release),
  builds: [
    {
      module: `${release.sources}etcd`,
      packages: ["go.etcd.io/etcd/etcdctl/v3", "go.etcd.io/etcd/etcdutl/v3"],
      ldflags: "-s -w",
    },
  ],
});

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
