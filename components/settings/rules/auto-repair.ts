import { Problem, toRemove } from "../problem";
import type { Settings } from "../settings";

/** What is wrong where a control plane is to have machines restarted, and has no identity by which it could. */
export function autoRepairProblems({
  autoRepair,
  machineIdentity,
  servicePrincipal,
}: Settings): Problem[] {
  if (!autoRepair) return [];
  if (servicePrincipal !== undefined) {
    return [
      {
        key: "autoRepair",
        is: "is true beside servicePrincipalClientId",
        expected:
          "one of the two, since a control plane asks Azure to restart a machine by its identity, which an application's machines do not have",
        fix: toRemove("autoRepair"),
      },
    ];
  }
  if (machineIdentity) return [];
  return [
    {
      key: "machineIdentity",
      is: "is false beside autoRepair",
      expected:
        "true, or no autoRepair, since a control plane asks Azure to restart a machine by its own identity",
      fix: toRemove("machineIdentity"),
    },
  ];
}
