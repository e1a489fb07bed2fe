import type { Cases } from "./case";

const setIn = (group: string, name = "kubernetes"): string =>
  `/subscriptions/3f1f6c52-8f0e-4b0c-9a52-4a3f6b0f7e11/resourceGroups/${group}/providers/Microsoft.Compute/diskEncryptionSets/${name}`;

export const diskEncryptionSetCases: Cases = {
  refused: [
    [
      "a set by its name",
      { diskEncryptionSetId: "kubernetes" },
      "Azure's id of a disk encryption set",
    ],
    [
      "a set whose name Azure would not take",
      { diskEncryptionSetId: setIn("keys", "my.set") },
      "Azure's id of a disk encryption set",
    ],
    [
      "a set that goes with the cluster",
      { clusterName: "mine", diskEncryptionSetId: setIn("Mine") },
      "in another resource group than mine",
    ],
    ["a text for a switch", { encryptionAtHost: "always" }, "encryptionAtHost"],
  ],
  accepted: [
    ["a set of others", { diskEncryptionSetId: setIn("keys") }],
    [
      "a set in the group of others that the cluster is in",
      { resourceGroup: "platform", diskEncryptionSetId: setIn("platform") },
    ],
    ["hosts that encrypt, with Azure's keys", { encryptionAtHost: true }],
  ],
};
