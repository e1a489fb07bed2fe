import { hash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { controllerManager, credentialProvider, nodeManager } from "../programs/controllers";
import { current, pinned, type Release, releaseOf } from "../programs/releases";
import {
  etcdctlToolOf,
  etcdToolOf,
  github,
  type GoBuild,
  kubernetesTool,
  kubernetesToolOf,
  nodeTool,
  nodeToolOf,
  ofModule,
  type Tool,
} from "../programs/tools";
import { checkout } from "../shared/checkout";

const modules = join(checkout, "tools/programs/modules");

/** Plugins of containernetworking, as kubernetes-cni has them. */
export const cniPlugins = [
  ...["bandwidth", "bridge", "dhcp", "dummy", "firewall", "host-device", "host-local", "ipvlan"],
  ...["loopback", "macvlan", "portmap", "ptp", "sbr", "static", "tap", "tuning", "vlan", "vrf"],
];

const cni = ofModule({
  ...{ name: "cni-plugins", module: "github.com/containernetworking/plugins", typical: "1 min" },
  binaries: cniPlugins,
  archive: (version) =>
    `${github}/containernetworking/plugins/releases/download/v${version}/cni-plugins-linux-amd64-v${version}.tgz`,
  member: (binary) => `./${binary}`,
});

/** crictl, the command line of the Container Runtime Interface. */
const criTools = ofModule({
  ...{ name: "cri-tools", module: "sigs.k8s.io/cri-tools", typical: "2 min" },
  binaries: ["crictl"],
  build: {
    ldflags: `-s -w -X sigs.k8s.io/cri-tools/pkg/version.Version=v${pinned("cri-tools", "sigs.k8s.io/cri-tools")}`,
  },
  archive: (version) =>
    `${github}/kubernetes-sigs/cri-tools/releases/download/v${version}/crictl-v${version}-linux-amd64.tar.gz`,
});

const corednsOf = ({ sources }: Release): Tool =>
  ofModule({
    ...{ name: "coredns", folder: `${sources}coredns`, module: "github.com/coredns/coredns" },
    typical: "3 min",
    archive: (version) =>
      `${github}/coredns/coredns/releases/download/v${version}/coredns_${version}_linux_amd64.tgz`,
  });

/** Programs with sources in a module's own folder; a digest of these is part of the version. */
export function ownProgram(
  module: string,
  builds: Pick<GoBuild, "packages" | "binary">,
  rest: {
    readonly name: string;
    readonly version: string;
    readonly binaries: readonly string[];
    readonly typical: string;
  },
): Tool {
  const folder = join(modules, module);
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.go$|go\.mod$/.test(path))
    .sort()
    .map((path) => readFileSync(join(folder, path), "utf8"));
  return {
    ...rest,
    version: `${rest.version}-${hash("sha256", sources.join()).slice(0, 12)}`,
    builds: [{ module, ldflags: "-s -w", ...builds }],
    downloads: [],
  };
}

/** Pulls images from their registries. */
export const craneTool = ofModule({
  ...{ name: "crane", module: "github.com/google/go-containerregistry", typical: "1 min" },
  archive: (version) =>
    `${github}/google/go-containerregistry/releases/download/v${version}/go-containerregistry_Linux_x86_64.tar.gz`,
  sums: "checksums.txt",
});

const flannel = ownProgram(
  "flannel",
  { packages: ["./flanneld"] },
  {
    name: "flannel",
    version: pinned("flannel", "github.com/flannel-io/flannel"),
    binaries: ["flanneld"],
    typical: "2 min",
  },
);

const metricsServer = ofModule({
  ...{ name: "metrics-server", module: "sigs.k8s.io/metrics-server", typical: "1 min" },
});

/**
 * Built even where Azure's registry answers: what comes out of an image there may need the C library
 * of that image, and is alone in an image from here.
 */
const builtStatically = (tool: Tool): Tool => ({
  ...tool,
  name: `${tool.name}-static`,
  image: undefined,
});

/** What upstream's end-to-end tests run in pods. */
const agnhost = ofModule({
  ...{ name: "agnhost", folder: "kubernetes", module: "k8s.io/kubernetes", typical: "1 min" },
  build: { packages: ["k8s.io/kubernetes/test/images/agnhost"] },
});

const pause = ownProgram(
  "pause",
  { packages: ["."], binary: "pause" },
  { name: "pause", version: "1", binaries: ["pause"], typical: "5 s" },
);

/** Programs of the packages that are built where pkgs.k8s.io does not answer. */
export const programsInPackages: readonly Tool[] = [kubernetesTool, cni, criTools, nodeTool];

/** Programs of kubeadm's images of a version; the longest build first. */
const controlPlanePrograms = (release: Release): readonly Tool[] => [
  kubernetesToolOf(release),
  corednsOf(release),
  etcdToolOf(release),
  etcdctlToolOf(release),
  nodeToolOf(release),
];

/** Programs of the images that are built where a registry does not answer; the longest build first. */
export const programsInImages: Readonly<Record<string, readonly Tool[]>> = {
  "registry.k8s.io": [...controlPlanePrograms(current), metricsServer, agnhost, pause],
  "ghcr.io": [flannel],
  "mcr.microsoft.com": [controllerManager, nodeManager].map(builtStatically),
};

/** Programs of the packages and images of one more Kubernetes version. */
export const programsOfRelease = (version: string): readonly Tool[] =>
  controlPlanePrograms(releaseOf(version));

/** A program's name in recipes: `kubelet`, or `kubelet@VERSION` where it is not the current one. */
export const versionedName = (binary: string, { version }: Release): string =>
  version === current.version ? binary : `${binary}@${version}`;

/** The tool that has a program of a recipe, and the program's name in it. */
export function locate(program: string): { readonly tool: Tool; readonly binary: string } {
  const [binary = "", version] = program.split("@");
  const all =
    version === undefined
      ? [
          ...programsInPackages,
          ...Object.values(programsInImages).flat(),
          ...[credentialProvider, craneTool],
        ]
      : programsOfRelease(version);
  const tool = all.find(({ binaries }) => binaries.includes(binary));
  if (!tool) throw new Error(`no tool has ${program}`);
  return { tool, binary };
}
