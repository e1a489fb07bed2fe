import type { Cases } from "./case";

export const sizeCases: Cases = {
  refused: [
    [
      "a size without Premium disks",
      { controlPlaneSize: "Standard_D4_v3" },
      "config set controlPlaneSize Standard_D4s_v3",
    ],
    [
      "an old size without Premium disks",
      { controlPlaneSize: "Standard_A2_v2" },
      "or osDiskSku StandardSSD_LRS",
    ],
    ["a size that is none", { controlPlaneSize: "D2s_v5" }, "the name of a VM size"],
    ["one processor", { controlPlaneSize: "Standard_B1ms" }, "at least 2 processors"],
    [
      "one used processor of four",
      { controlPlaneSize: "Standard_E4-1s_v5" },
      "at least 2 processors",
    ],
    ["a gigabyte of memory", { controlPlaneSize: "Standard_B2ts_v2" }, "1700 MB"],
  ],
  accepted: [
    ["control planes on Arm", { controlPlaneSize: "Standard_D2pds_v6" }],
    ["a size of the first families with Premium disks", { controlPlaneSize: "Standard_DS2_v2" }],
    [
      "a size without them where the disk needs none",
      { controlPlaneSize: "Standard_D4_v3", osDiskSku: "StandardSSD_LRS" },
    ],
    ["a size with an accelerator", { controlPlaneSize: "Standard_NV36ads_A10_v5" }],
  ],
};
