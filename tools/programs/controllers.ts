import { pinned } from "./pinned";
import type { Tool } from "./tools";

/** A program of upstream's that is published in an image alone. */
function controller(
  name: string,
  module: string,
  {
    folder = "cmd",
    /** Where it keeps its version. */
    variable = "main.version",
    typical = "30 s",
  } = {},
): Tool {
  const version = pinned("controllers", module);
  return {
    name,
    version,
    binaries: [name],
    builds: [
      {
        module: "controllers",
        packages: [`${module}/${folder}/${name}`],
        ldflags: `-s -w -X ${variable}=v${version}`,
      },
    ],
    typical,
    downloads: [],
  };
}

const cloudProvider = "sigs.k8s.io/cloud-provider-azure";
const driver = "sigs.k8s.io/azuredisk-csi-driver";
const csi = "github.com/kubernetes-csi";

export const controllerManager = controller("cloud-controller-manager", cloudProvider, {
  variable: `${cloudProvider}/pkg/version.gitVersion`,
  typical: "2 min",
});

export const nodeManager = controller("cloud-node-manager", cloudProvider, {
  variable: `${cloudProvider}/pkg/version.gitVersion`,
});

export const diskPlugin = controller("azurediskplugin", driver, {
  folder: "pkg",
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
