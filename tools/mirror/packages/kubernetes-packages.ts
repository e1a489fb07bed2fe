import { constants, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { pinned, releaseOf } from "../../programs/releases";
import { run } from "../../shared/run";
import { cniPlugins, versionedName } from "../mirrored-programs";

/** Below any version of pkgs.k8s.io, whose own packages are preferred when both are there. */
const revision = "0.zoned";

const service = `[Unit]
Description=The agent that runs this node's pods
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
RestartSec=10

[Install]
WantedBy=multi-user.target
`;

// Names and order of the files are kubeadm's contract with packagers.
const dropIn = `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`;

const cni: DebRecipe = {
  name: "kubernetes-cni",
  version: `${pinned("cni-plugins", "github.com/containernetworking/plugins")}-${revision}`,
  depends: [],
  description: "plugins that connect containers to networks",
  binaries: Object.fromEntries(cniPlugins.map((name) => [`/opt/cni/bin/${name}`, name])),
};

const criTools: DebRecipe = {
  name: "cri-tools",
  version: `${pinned("cri-tools", "sigs.k8s.io/cri-tools")}-${revision}`,
  depends: [],
  description: "command line for container runtimes, as the kubelet speaks to them",
  binaries: { "/usr/bin/crictl": "crictl" },
};

/** The distribution's packages that the kubelet depends on. */
export const kubeletDepends = [
  ...["conntrack", "ethtool", "iproute2", "iptables", "mount", "socat", "util-linux"],
];

/**
 * The packages of one version. As upstream's (cmd/krel/templates/latest/metadata.yaml of
 * kubernetes/release), kubeadm does not depend on kubelet: an upgrade installs kubeadm first.
 */
function packagesOf(kubernetes: string): DebRecipe[] {
  const version = `${kubernetes}-${revision}`;
  const release = releaseOf(kubernetes);
  return [
    {
      name: "kubelet",
      version,
      depends: [...kubeletDepends, cni.name],
      description: "the agent that runs a Kubernetes node's pods",
      binaries: { "/usr/bin/kubelet": versionedName("kubelet", release) },
      texts: {
        "/usr/lib/systemd/system/kubelet.service": service,
        "/etc/default/kubelet": "KUBELET_EXTRA_ARGS=\n",
      },
    },
    {
      name: "kubectl",
      version,
      depends: [],
      description: "command line of Kubernetes",
      binaries: { "/usr/bin/kubectl": versionedName("kubectl", release) },
    },
    {
      name: "kubeadm",
      version,
      depends: [],
      description: "initializes Kubernetes clusters and joins machines to them",
      binaries: { "/usr/bin/kubeadm": versionedName("kubeadm", release) },
      texts: { "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": dropIn },
    },
  ];
}

/** The packages that the first boot installs from pkgs.k8s.io, as they are built here. */
export const kubernetesPackages = (versions: readonly string[]): readonly DebRecipe[] => [
  cni,
  criTools,
  ...versions.flatMap(packagesOf),
];

/** The packages of pkgs.k8s.io, as arguments of `apt-get install`. */
export const fromKubernetes = (version: string): string[] => [
  ...["kubelet", "kubeadm", "kubectl"].map((name) => `${name}=${version}-*`),
  criTools.name,
];

/** A Debian package that is built here. */
interface DebRecipe {
  readonly name: string;
  readonly version: string;
  readonly depends: readonly string[];
  readonly description: string;
  /** Executables by their place in the package. */
  readonly binaries: Readonly<Record<string, string>>;
  /** Text files by their place in the package; those below /etc are conffiles. */
  readonly texts?: Readonly<Record<string, string>>;
}

export const debName = ({ name, version }: DebRecipe): string => `${name}_${version}_amd64.deb`;

/**
 * Packs a package at `target`; `draft` is an empty folder for what goes in, `pathOf` returns where
 * an executable is.
 */
export async function packDeb(
  recipe: DebRecipe,
  target: string,
  draft: string,
  pathOf: (binary: string) => Promise<string>,
  signal: AbortSignal,
): Promise<void> {
  const place = (path: string): string => {
    const at = join(draft, path);
    mkdirSync(dirname(at), { recursive: true });
    return at;
  };
  for (const [path, binary] of Object.entries(recipe.binaries)) {
    copyFileSync(await pathOf(binary), place(path), constants.COPYFILE_FICLONE);
  }
  const texts = Object.entries(recipe.texts ?? {});
  for (const [path, text] of texts) writeFileSync(place(path), text, { mode: 0o644 });
  writeFileSync(place("DEBIAN/control"), controlFile(recipe));
  const administrators = texts.map(([path]) => path).filter((path) => path.startsWith("/etc/"));
  if (administrators.length > 0) {
    writeFileSync(place("DEBIAN/conffiles"), `${administrators.join("\n")}\n`);
  }
  // Unpacking may be done by an emulated processor.
  const flags = ["--root-owner-group", "-Znone"];
  const env = { SOURCE_DATE_EPOCH: "0" };
  await run(["dpkg-deb", ...flags, "--build", draft, target], { signal, env });
}

const controlFile = ({ name, version, depends, description }: DebRecipe): string =>
  [
    `Package: ${name}`,
    `Version: ${version}`,
    "Architecture: amd64",
    "Maintainer: zoned <root@localhost>",
    "Section: admin",
    "Priority: optional",
    ...(depends.length > 0 ? [`Depends: ${depends.join(", ")}`] : []),
    `Description: ${description}`,
    "",
  ].join("\n");
