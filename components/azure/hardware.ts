import type { MachinePlan } from "../settings/topology";
import {
  Architecture,
  architectureOf,
  hasAcceleratedNetworking,
  isNvmeOnly,
  Sku,
  sizesIn,
} from "./size-offers";

/** What machines are made differently for, by their size. */
export interface Hardware {
  readonly architecture: Architecture;
  readonly hasAcceleratedNetworking: boolean;
  /** Whether disks are attached by NVMe and by nothing else. */
  readonly isNvmeOnly: boolean;
}

/** Of sizes that Azure says nothing of, which it is not asked to make machines of. */
export const plainHardware: Hardware = {
  architecture: "x64",
  hasAcceleratedNetworking: false,
  isNvmeOnly: false,
};

/** The hardware of these machines, by their names. */
export function hardwareOf(
  machines: readonly MachinePlan[],
  { skus }: { readonly skus: readonly Sku[] },
): Map<string, Hardware> {
  const sizes = sizesIn(skus);
  return new Map(
    machines.map(({ name, size }) => {
      const sku = sizes.get(size.toLowerCase());
      return [name, sku === undefined ? plainHardware : hardwareOfSku(sku)];
    }),
  );
}

const hardwareOfSku = (sku: Sku): Hardware => ({
  architecture: architectureOf(sku),
  hasAcceleratedNetworking: hasAcceleratedNetworking(sku),
  isNvmeOnly: isNvmeOnly(sku),
});
