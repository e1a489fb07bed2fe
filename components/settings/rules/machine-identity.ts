import { accountKey, ownAccounts } from "../logins";
import { Problem, toRemove } from "../problem";
import type { Settings } from "../settings";

/** What is wrong where control planes are to carry no identity. */
export function machineIdentityProblems(settings: Settings): Problem[] {
  const { machineIdentity, servicePrincipal, workloadIdentities } = settings;
  if (machineIdentity) return [];
  const own = ownAccounts(settings).map(accountKey);
  const problems: (Problem | false)[] = [
    servicePrincipal !== undefined && {
      key: "machineIdentity",
      is: "is false beside servicePrincipalClientId",
      expected:
        "one of the two, since an application's machines have no identity, and the cloud provider logs in by its secret",
      fix: toRemove("machineIdentity"),
    },
    ...workloadIdentities.map(
      (one, index): Problem | false =>
        own.includes(accountKey(one)) && {
          key: `workloadIdentities[${index}]`,
          is: `is ${one.namespace}/${one.serviceAccount}`,
          expected:
            "none of this program's own, which log in as the cluster's identity by machineIdentity",
          fix: toRemove(`workloadIdentities[${index}]`),
        },
    ),
  ];
  return problems.filter((problem) => problem !== false);
}

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
