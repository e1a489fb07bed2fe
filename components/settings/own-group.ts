import type { Settings } from "./settings";

/** Whether something is in the resource group that this program makes, and that goes with all that is in it. */
export const isInOwnGroup = (
  { clusterName, resourceGroup }: Pick<Settings, "clusterName" | "resourceGroup">,
  group: string | undefined,
): boolean => resourceGroup === "" && group?.toLowerCase() === clusterName.toLowerCase();
