import { isInOwnGroup } from "../own-group";
import { Problem, wants } from "../problem";
import type { Settings } from "../settings";

interface Given {
  readonly key: string;
  readonly id: string;
  /** The parts of the id; undefined where it is none. */
  readonly place: { readonly resourceGroup: string } | undefined;
  /** What the id is expected to be. */
  readonly expected: string;
  /** With its article. */
  readonly what: string;
  readonly example: string;
}

/** What is wrong with the id of something that others have made, and that this cluster only uses. */
export function idOfOthersProblems(
  settings: Pick<Settings, "clusterName" | "resourceGroup">,
  { key, id, place, expected, what, example }: Given,
): Problem[] {
  if (place === undefined) return [wants(key, id, expected, example)];
  if (!isInOwnGroup(settings, place.resourceGroup)) return [];
  const group = `in another resource group than ${settings.clusterName}, which pulumi destroy deletes with all that is in it`;
  return [wants(key, id, `${what} ${group}`, example)];
}
