import { toSet } from "../settings/problem";
import { Settings } from "../settings/settings";

/** What a cluster keeps for its life, by the names of the settings. */
export type FixedSettings = Pick<
  Settings,
  "clusterName" | "location" | "zones" | "networkCidr" | "podCidr" | "serviceCidr" | "cni"
>;

const why: Readonly<Record<keyof FixedSettings, string>> = {
  clusterName: "its machines, disks and addresses would be deleted with their resource group",
  location: "Azure cannot move it, so that everything would be deleted",
  zones: "its public addresses keep their zones",
  networkCidr: "its machines keep their addresses",
  podCidr: "its Nodes keep their ranges",
  serviceCidr: "its Services keep their addresses",
  cni: "its pods keep their network",
};

export const fixedSettings = (settings: Settings): FixedSettings => ({
  clusterName: settings.clusterName,
  location: settings.location,
  zones: settings.zones,
  networkCidr: settings.networkCidr,
  podCidr: settings.podCidr,
  serviceCidr: settings.serviceCidr,
  cni: settings.cni,
});

/** Zones in another order are the same zones; what that would move is refused by addresses.ts. */
const textOf = (value: string | readonly string[]): string =>
  typeof value === "string" ? value : [...value].sort().join(", ");

const commandsFor = (key: string, value: string | readonly string[]): string =>
  typeof value === "string"
    ? toSet(key, value)
    : [`pulumi config rm ${key}`, ...value.map((one, at) => toSet(`${key}[${at}]`, one))].join(
        "; ",
      );

/** Why the settings are not those of the cluster that this stack has. */
export const fixedProblems = (wanted: Settings, made: Partial<FixedSettings> = {}): string[] =>
  (Object.keys(why) as (keyof FixedSettings)[]).flatMap((key) => {
    const had = made[key];
    if (had === undefined || textOf(had) === textOf(wanted[key])) return [];
    return [
      `${key} is ${textOf(wanted[key])}, and this stack's cluster was made with ${textOf(had)}: ${why[key]}. ` +
        `Take the change back (${commandsFor(key, had)}), or make it in a new stack (pulumi stack init)`,
    ];
  });
