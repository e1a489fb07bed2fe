import { parseDiskEncryptionSet } from "../disk-encryption-set-id";
import { isInOwnGroup } from "../own-group";
import { Problem, wants } from "../problem";
import type { Settings } from "../settings";

const example =
  "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/kubernetes";

/** What is wrong with the id of a disk encryption set. */
export function diskEncryptionSetProblems(settings: Settings): Problem[] {
  const { clusterName, diskEncryptionSetId } = settings;
  if (diskEncryptionSetId === "") return [];
  const problem = (expected: string) =>
    wants("diskEncryptionSetId", diskEncryptionSetId, expected, example);
  const place = parseDiskEncryptionSet(diskEncryptionSetId);
  if (place === undefined) {
    return [
      problem(
        "Azure's id of a disk encryption set, as `az disk-encryption-set show --query id` prints it",
      ),
    ];
  }
  return isInOwnGroup(settings, place.resourceGroup)
    ? [
        problem(
          `a set in another resource group than ${clusterName}, which pulumi destroy deletes with all that is in it`,
        ),
      ]
    : [];
}
