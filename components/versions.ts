/**
 * Every upstream version the cluster is built from, and every address it is fetched from. Bump
 * here, nowhere else.
 */
export const versions = {
  /** Kubernetes and kubeadm, for clusters that name no version. */
  kubernetes: "1.37.2",
  /** What kubeadm of this minor asks for; the first boot pulls it ahead. */
  etcd: "3.7.0-0",
  /**
   * Canonical:ubuntu-24_04-lts:server. Old versions are withdrawn from time to time: then take a
   * newer one.
   */
  ubuntuImage: "24.04.202607140",
  /** kubernetes-sigs/azuredisk-csi-driver; its numbers do not follow Kubernetes. */
  diskDriver: "v1.34.5",
  calico: "v3.32.1",
  flannel: "v0.28.10",
  /** kubereboot/kured, for `reboots`. */
  kured: "1.23.0",
  /** kubernetes-sigs/metrics-server; 0.9 is for Kubernetes 1.34 and newer. */
  metricsServer: "v0.9.0",
  /**
   * Mirantis/cri-dockerd, for `containerRuntime: cri-dockerd`. Docker 29 refuses the API of
   * anything before 0.4.
   */
  criDockerd: "0.4.3",
  /**
   * Lower bounds, since distributions drop old packages: what is newer is taken and held. AppArmor 4
   * of Ubuntu 24.04 confines runc, whose signals the profiles of older ones refuse: containers get no
   * SIGTERM, and are killed (containerd/containerd#10129, in 1.7.16; moby/moby#47829, in 26.1.3).
   */
  containerdAtLeast: "1.7.24",
  dockerAtLeast: "26.1.3",
} as const;

interface Minor {
  readonly minor: string;
  /** A tag of kubernetes-sigs/cloud-provider-azure, whose minor must be that of Kubernetes. */
  readonly cloudProvider: string;
  /** A tag of etcd's image, where that of kubeadm is too old for the minor that comes after. */
  readonly etcd?: string;
  /** What every member of etcd must report before an upgrade to this minor; kubeadm does not look. */
  readonly etcdBefore?: string;
}

/**
 * The Kubernetes minors that a cluster of this release may run, newest first: the one before is a
 * place to come from, since kubeadm upgrades by one minor at a time.
 */
export const minors: readonly [Minor, Minor] = [
  // Its etcd may not be compatible with members before that (etcd's guide "Upgrade etcd from v3.6 to v3.7").
  { minor: "1.37", cloudProvider: "v1.37.5", etcdBefore: "3.6.11" },
  { minor: "1.36", cloudProvider: "v1.36.5", etcd: "3.6.14-0" },
];

/** The minor of a version, such as `1.36`. */
export const minorOf = (version: string): string => version.split(".").slice(0, 2).join(".");

/** What belongs to a Kubernetes version; settings admit no other minor. */
export const minorFor = (kubernetesVersion: string): Minor =>
  minors.find(({ minor }) => minor === minorOf(kubernetesVersion)) ?? minors[0];

/** The tag of etcd's image for a Kubernetes version. */
export const etcdOf = (kubernetesVersion: string): string =>
  minorFor(kubernetesVersion).etcd ?? versions.etcd;

/** The cloud provider's images for a Kubernetes version. */
export const cloudProviderImages = (kubernetesVersion: string) => {
  const image = (name: string): string =>
    `mcr.microsoft.com/oss/v2/kubernetes/${name}:${minorFor(kubernetesVersion).cloudProvider}`;
  return {
    controllerManager: image("azure-cloud-controller-manager"),
    nodeManager: image("azure-cloud-node-manager"),
  };
};

/** By which kubelets log in to Azure's registries, for x64: a release has one for each processor. */
export const credentialProviderArchive = (kubernetesVersion: string): string => {
  const { cloudProvider } = minorFor(kubernetesVersion);
  return `https://packages.aks.azure.com/cloud-provider-azure/${cloudProvider}/binaries/azure-acr-credential-provider-linux-amd64-${cloudProvider}.tar.gz`;
};

export const metricsServerImage = `registry.k8s.io/metrics-server/metrics-server:${versions.metricsServer}`;

export const flannelImage = `ghcr.io/flannel-io/flannel:${versions.flannel}`;

export const kuredImage = `ghcr.io/kubereboot/kured:${versions.kured}`;

export interface Manifest {
  /** Place below a mirror's `manifests/`. */
  readonly path: string;
  readonly url: string;
  readonly sha256: string;
}

const calico = (file: string, sha256: string): Manifest => ({
  path: `calico-${versions.calico}/${file}`,
  url: `https://raw.githubusercontent.com/projectcalico/calico/${versions.calico}/manifests/${file}`,
  sha256,
});

const diskDriver = (file: string, sha256: string): Manifest => ({
  path: `azuredisk-csi-${versions.diskDriver}/${file}`,
  url: `https://raw.githubusercontent.com/kubernetes-sigs/azuredisk-csi-driver/${versions.diskDriver}/deploy/${versions.diskDriver}/${file}`,
  sha256,
});

/** Upstream manifests, taken by address and SHA-256 when the program runs. */
export const manifests = {
  canal: [calico("canal.yaml", "aa58a7b245586a90d75d969b9184326f6218acea7e4951ce2931113cd8e91e39")],
  diskDriver: [
    diskDriver(
      "crd-csi-snapshot.yaml",
      "88ae00b268000b4c0ba52c0acbefbc69bc73aadf99b434c3920ec6a8b94dd7ae",
    ),
    diskDriver(
      "csi-azuredisk-driver.yaml",
      "e9d47846ae9ac890be1d524b08211c42a16f55361e5ae8a3dd6114c1d996edc1",
    ),
    diskDriver(
      "rbac-csi-azuredisk-controller.yaml",
      "df673ac2ae5016a500e65d1a0cb9e930e0dc57f43a1a8ce8f2fd070ad437e4c7",
    ),
    diskDriver(
      "rbac-csi-azuredisk-node.yaml",
      "ce96533b7eeaa439b2ccb6664e8843591090e3de97be49dfcba2c87796033038",
    ),
    diskDriver(
      "rbac-csi-snapshot-controller.yaml",
      "7788f5c5ba67265ec29a88fbc3b0683b53222ea71aa0049902fa129309c7bd9e",
    ),
    diskDriver(
      "csi-azuredisk-controller.yaml",
      "da5af9aadfa4c34b090720f3e06053fca527fb1cc71adf04ed0c0a8a08ee228e",
    ),
    diskDriver(
      "csi-azuredisk-node.yaml",
      "5d2bb0d4f976f8d712f37d48c13594b478ccc6dcb3f6d5fe638de35c1dd4c2c8",
    ),
    diskDriver(
      "csi-snapshot-controller.yaml",
      "95d597c33c5dd254ce8ce86fc2ede2ef8ad1af67e2d99096936cf78b1e4620ed",
    ),
  ],
} as const satisfies Record<string, readonly Manifest[]>;
