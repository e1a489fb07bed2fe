import { pinned } from "./releases";
import type { Tool } from "./tools";

/**
 * Digests of images by name and tag, as `crane digest` says them. Of Microsoft's nobody publishes one:
 * there the registry's own is trusted, as a publisher's list of hashes is elsewhere.
 */
const digests: Readonly<Record<string, string>> = {
  "csi-provisioner:v6.3.0":
    "sha256:a4b0b1a37605b7b04a293e136edf7006ec1786a8eb3f4e5a945f81d667dcc371",
  "csi-attacher:v4.12.0": "sha256:b9dc9a714a484ccdeeb6f86d88d4db9b7a5ecfc5a55da6db3a60bb3fa33c278a",
  "csi-resizer:v2.2.0": "sha256:a2d40c1c3ccb0c48b467125a6652c4dd5dcbf0d295641c9989581cfc690f6cf3",
  "csi-snapshotter:v8.6.0":
    "sha256:42af0929bcd60a43499825c078a60ff0534e08af8fbeb283aa391be40feb9f3e",
  "snapshot-controller:v8.6.0":
    "sha256:81e79f205083f105e573ba2ebfe5964ede7f69a154e8627f53ebbbccd3ed9f70",
};

/** A program of upstream's that is published in an image alone: that of the module's version. */
function controller(
  name: string,
  module: string,
  {
    folder = "cmd",
    repository = `https://registry.k8s.io/v2/sig-storage/${name}`,
    /** Where it keeps its version. */
    variable = "main.version",
    typical = "30 s",
  } = {},
): Tool {
  const version = pinned("controllers", module);
  const tag = `v${version}`;
  return {
    name,
    version,
    binaries: [name],
    builds: [
      {
        module: "controllers",
        packages: [`${module}/${folder}/${name}`],
        ldflags: `-s -w -X ${variable}=${tag}`,
      },
    ],
    typical,
    downloads: [],
    image: { repository, reference: digests[`${name}:${tag}`] ?? tag },
  };
}

const cloudProvider = "sigs.k8s.io/cloud-provider-azure";
const driver = "sigs.k8s.io/azuredisk-csi-driver";
const csi = "github.com/kubernetes-csi";
const microsoft = "https://mcr.microsoft.com/v2/oss/v2";

export const controllerManager = controller("cloud-controller-manager", cloudProvider, {
  repository: `${microsoft}/kubernetes/azure-cloud-controller-manager`,
  variable: `${cloudProvider}/pkg/version.gitVersion`,
  typical: "2 min",
});

export const nodeManager = controller("cloud-node-manager", cloudProvider, {
  repository: `${microsoft}/kubernetes/azure-cloud-node-manager`,
  variable: `${cloudProvider}/pkg/version.gitVersion`,
});

/** By which kubelets log in to registries. */
export const credentialProvider: Tool = {
  ...controller("acr-credential-provider", cloudProvider, {
    variable: `${cloudProvider}/pkg/version.gitVersion`,
  }),
  image: undefined,
};

export const diskPlugin = controller("azurediskplugin", driver, {
  folder: "pkg",
  repository: `${microsoft}/kubernetes-csi/azuredisk-csi`,
  variable: `${driver}/pkg/azuredisk.driverVersion`,
});

/** The controller of Azure's disk driver, which works with all of them or not at all. */
export const diskDriver: readonly Tool[] = [
  diskPlugin,
  controller("csi-provisioner", `${csi}/external-provisioner/v6`),
  controller("csi-attacher", `${csi}/external-attacher/v4`),
  controller("csi-resizer", `${csi}/external-resizer/v2`),
  controller("csi-snapshotter", `${csi}/external-snapshotter/v8`),
  controller("snapshot-controller", `${csi}/external-snapshotter/v8`),
];
