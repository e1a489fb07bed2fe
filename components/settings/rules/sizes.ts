import { Problem, wants } from "../problem";
import type { LocalDisk, OsDiskSku, Settings } from "../settings";

/**
 * What Azure's naming of sizes says: Standard_E4-2ds_v5 is family E, 4 processors of which 2 are
 * used, features ds.
 */
const shape = /^Standard_([A-Z]+)(\d+)(?:-(\d+))?([a-z]*)((?:_[A-Za-z0-9]+)*)$/;

const fallback = "Standard_D2s_v5";

/** A size that is written otherwise, as in d8s_v5, as Azure writes it. */
function spelt(size: string): string {
  const name = size.toLowerCase().replace(/^standard_/, "");
  const better = `Standard_${name.replace(/^[a-z]+/, (family) => family.toUpperCase())}`;
  return shape.test(better) ? better : fallback;
}

interface Need {
  readonly key: string;
  readonly size: string;
  readonly controlPlane: boolean;
  readonly osDiskSku: OsDiskSku;
}

function problemsOf({ key, size, controlPlane, osDiskSku }: Need): Problem[] {
  const refused = (expected: string, better = fallback): Problem[] => [
    wants(key, size, expected, better),
  ];
  const parts = shape.exec(size);
  if (parts === null) {
    return refused(
      "the name of a VM size such as Standard_D2s_v5, as `az vm list-sizes` prints it",
      spelt(size),
    );
  }
  const [, family = "", processors = "", used = processors, features = "", rest = ""] = parts;
  const named = (better: string): string =>
    size.slice(0, size.length - (features + rest).length) + better + rest;
  if (osDiskSku === "Premium_LRS" && !features.includes("s") && !family.endsWith("S")) {
    return refused(
      "a size that takes the Premium disks of osDiskSku (an s after the number), or " +
        "osDiskSku StandardSSD_LRS",
      /^[DEF]$/.test(family) ? named(`${features}s`) : fallback,
    );
  }
  if (controlPlane && (Number(used) < 2 || features.includes("t"))) {
    return refused(
      "at least 2 processors and 1700 MB, without which kubeadm refuses a control plane",
    );
  }
  return [];
}

/**
 * What is wrong with the machines' sizes, as far as their names tell. Azure is asked the rest
 * before anything is made.
 */
export const sizeProblems = ({ controlPlaneSize, osDiskSku, workerPools }: Settings): Problem[] =>
  [
    { key: "controlPlaneSize", size: controlPlaneSize, controlPlane: true, osDiskSku },
    ...workerPools.map((pool, index) => ({
      key: `workerPools[${index}].size`,
      size: pool.size,
      controlPlane: false,
      osDiskSku: pool.osDiskSku,
    })),
  ].flatMap(problemsOf);

/** What OS disks can be made of, the default first. */
export const osDiskSkus: readonly OsDiskSku[] = ["Premium_LRS", "StandardSSD_LRS"];

/** Where an OS disk can lie on its host. */
export const localDisks: readonly LocalDisk[] = ["CacheDisk", "ResourceDisk", "NvmeDisk"];

/** How large they can be, in GiB. */
export const osDiskSizes = {
  least: 30,
  most: 4095,
  why: "from what the image needs to what Azure boots from",
} as const;
