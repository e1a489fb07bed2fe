import type { Cases } from "./case";

export const sizeCases: Cases = {
  refused: [
    {
      flaw: "a control plane on Arm",
      values: { controlPlaneSize: "Standard_D2pds_v5" },
      says: "config set controlPlaneSize Standard_D2ds_v5",
    },
    {
      flaw: "a size without Premium disks",
      values: { controlPlaneSize: "Standard_D4_v3" },
      says: "config set controlPlaneSize Standard_D4s_v3",
    },
    {
      flaw: "an old size without Premium disks",
      values: { controlPlaneSize: "Standard_A2_v2" },
      says: "or osDiskSku StandardSSD_LRS",
    },
    {
      flaw: "a size that is none",
      values: { controlPlaneSize: "D2s_v5" },
      says: "the name of a VM size",
    },
    {
      flaw: "one processor",
      values: { controlPlaneSize: "Standard_B1ms" },
      says: "at least 2 processors",
    },
    {
      flaw: "one used processor of four",
      values: { controlPlaneSize: "Standard_E4-1s_v5" },
      says: "at least 2 processors",
    },
    {
      flaw: "a gigabyte of memory",
      values: { controlPlaneSize: "Standard_B2ts_v2" },
      says: "1700 MB",
    },
  ],
  accepted: [
    {
      merit: "a size of the first families with Premium disks",
      values: { controlPlaneSize: "Standard_DS2_v2" },
    },
    {
      merit: "a size without them where the disk needs none",
      values: { controlPlaneSize: "Standard_D4_v3", osDiskSku: "StandardSSD_LRS" },
    },
    {
      merit: "a size with an accelerator",
      values: { controlPlaneSize: "Standard_NV36ads_A10_v5" },
    },
  ],
};
