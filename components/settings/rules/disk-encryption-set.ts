import { parseDiskEncryptionSet } from "../disk-encryption-set-id";
import type { Problem } from "../problem";
import type { Settings } from "../settings";
import { idOfOthersProblems } from "./id-of-others";

/** What is wrong with the id of a disk encryption set. */
export const diskEncryptionSetProblems = (settings: Settings): Problem[] =>
  settings.diskEncryptionSetId === ""
    ? []
    : idOfOthersProblems(settings, {
        key: "diskEncryptionSetId",
        id: settings.diskEncryptionSetId,
        place: parseDiskEncryptionSet(settings.diskEncryptionSetId),
        expected:
          "Azure's id of a disk encryption set, as `az disk-encryption-set show --query id` prints it",
        what: "a set",
        example:
          "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/kubernetes",
      });
