import { Machine } from "./topology";

/** One entry of Azure's Microsoft.Compute/skus, as far as it is read here. */
export interface Sku {
  readonly resourceType: string;
  readonly name: string;
  readonly locationInfo?: readonly {
    readonly location: string;
    readonly zones?: readonly string[];
  }[];
  readonly capabilities?: readonly { readonly name: string; readonly value: string }[];
  readonly restrictions?: readonly {
    readonly type: string;
    readonly reasonCode?: string;
    readonly restrictionInfo?: { readonly zones?: readonly string[] };
  }[];
}

interface Wanted {
  readonly location: string;
  readonly osDiskSku: string;
  /** What tells the operator to change the machine's size, without the value. */
  readonly command: (machine: Machine) => string;
}

/**
 * What is wrong with the sizes of these machines, one sentence each, by what Azure offers this subscription.
 *
 * Azure tells it only when the VM is created, which is after everything else was. It does not tell quotas,
 * policies or what is sold out at the moment.
 */
export function sizeProblems(
  machines: readonly Machine[],
  skus: readonly Sku[],
  { location, osDiskSku, command }: Wanted,
): string[] {
  const sizes = new Map(
    skus
      .filter(({ resourceType }) => resourceType === "virtualMachines")
      .map((sku) => [sku.name.toLowerCase(), sku]),
  );
  return machines.flatMap((machine) => {
    const { name, size, zone } = machine;
    const mend = () => {
      const fitting = [...sizes.values()].filter(
        (other) =>
          usableZones(other, location).includes(zone) && misfits(other, osDiskSku).length === 0,
      );
      return `(${command(machine)} ${closest(size, fitting) ?? "SIZE"})`;
    };

    const sku = sizes.get(size.toLowerCase());
    if (sku === undefined) {
      return [
        `${name}: size ${size} is not offered in ${location}; list what is: az vm list-skus -l ${location} ${mend()}`,
      ];
    }
    const zones = usableZones(sku, location);
    if (!zones.includes(zone)) {
      const reason = sku.restrictions?.find(({ reasonCode }) => reasonCode)?.reasonCode;
      return [
        `${name}: size ${size} is not available in zone ${zone} of ${location} for this subscription` +
          (reason === undefined ? "" : ` (${reason})`) +
          (zones.length > 0 ? `, only in zone ${zones.join(", ")}` : ", in no zone") +
          ` ${mend()}`,
      ];
    }
    return misfits(sku, osDiskSku).map((misfit) => `${name}: size ${size} ${misfit} ${mend()}`);
  });
}

/** What keeps machines of this program from running on a size, wherever it is offered. */
function misfits({ capabilities }: Sku, osDiskSku: string): string[] {
  const capability = (key: string) =>
    capabilities?.find((one) => one.name === key)?.value.toLowerCase();
  const problems: string[] = [];
  if (capability("CpuArchitectureType") === "arm64") {
    problems.push("is an Arm size, and the machine image is for x64");
  }
  if (osDiskSku.startsWith("Premium") && capability("PremiumIO") === "false") {
    problems.push(`takes no Premium disks, and osDiskSku is ${osDiskSku}`);
  }
  return problems;
}

/** Zone numbers where the size can be had; a restriction of type Location closes the whole region. */
function usableZones(sku: Sku, location: string): string[] {
  const restrictions = sku.restrictions ?? [];
  if (restrictions.some(({ type }) => type === "Location")) return [];
  const barred = restrictions.flatMap(({ restrictionInfo }) => restrictionInfo?.zones ?? []);
  const offered =
    sku.locationInfo?.find((info) => info.location.toLowerCase() === location)?.zones ?? [];
  return offered.filter((zone) => !barred.includes(zone)).sort();
}

/** The size whose name starts most like the wanted one. */
function closest(size: string, skus: readonly Sku[]): string | undefined {
  const likeness = ({ name }: Sku) => {
    let length = 0;
    while (length < name.length && name[length] === size[length]) length++;
    return length;
  };
  return [...skus].sort((a, b) => likeness(b) - likeness(a) || a.name.localeCompare(b.name))[0]
    ?.name;
}
