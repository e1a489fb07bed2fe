import { pinned } from "../../programs/pinned";
import { releaseOf } from "../../programs/releases";
import type { DebRecipe } from "./deb";
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
