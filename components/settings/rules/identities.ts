import { accountKey, hasIssuer, ownAccounts } from "../logins";
import { Problem, findings, toRemove, toSet, wants } from "../problem";
import type { Settings, WorkloadIdentity } from "../settings";
import { entriesOf, goBoolean, pairOf } from "./argument-types";
import { exampleId, identityIdProblems } from "./ids-of-others";

const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const subdomain = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
const guid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const role = new RegExp(
  `^(/.+/providers/Microsoft\\.Authorization/roleDefinitions/)?${guid}$`,
  "i",
);
const scope = /^\/(subscriptions|providers)\/[^/]+(\/.+)?[^/]$/i;

const exampleIdentity = exampleId(
  "shop/providers/Microsoft.ManagedIdentity/userAssignedIdentities/shop",
);

/** Azure takes so many federated credentials of an identity. */
export const mostOfIdentity = 20;

const admission = "MutatingAdmissionPolicy";

/** Of a managed identity's and a federated credential's name. */
const longestName = 120;

/** What Azure calls what belongs to a service account: of its name's characters Azure takes all but the dot. */
export const azureName = (
  clusterName: string,
  one: Pick<WorkloadIdentity, "namespace" | "serviceAccount">,
): string => `${clusterName}_${one.namespace}_${one.serviceAccount.replaceAll(".", "__")}`;

type Role = WorkloadIdentity["roles"][number];

/** By which Azure compares what is assigned to an identity: a role's GUID is the same in its id. */
export const roleKey = ({ role: given, scope: at }: Role): string =>
  `${given.split("/").at(-1)} ${at}`.toLowerCase();

/** What is wrong with the service accounts that log in to Azure. */
export function workloadIdentityProblems(settings: Settings): Problem[] {
  const { workloadIdentities: all, clusterName, kubeadm, machineIdentity } = settings;
  if (!hasIssuer(settings)) return [];
  const ofArguments = ["service-account-issuer", "service-account-jwks-uri"]
    .filter((name) => name in kubeadm.apiServerExtraArgs)
    .map((name) => ({
      key: `kubeadm.apiServerExtraArgs.${name}`,
      is: `is set beside ${all.length > 0 ? "workloadIdentities" : "machineIdentity false"}`,
      expected: "no issuer of your own, since Entra has to find this program's documents at it",
      fix: toRemove(`kubeadm.apiServerExtraArgs.${name}`),
    }));
  return [
    ...all.flatMap((one, index) => problemsOf(one, index)),
    ...ofArguments,
    ...(all.length > 0 ? withoutPolicies(settings) : []),
  ];

  function problemsOf(one: WorkloadIdentity, index: number): Problem[] {
    const key = `workloadIdentities[${index}]`;
    const { namespace, serviceAccount, identityId, roles } = one;
    const isTwice = all
      .slice(0, index)
      .some((other) => other.namespace === namespace && other.serviceAccount === serviceAccount);
    const own = !machineIdentity && isSame(settings, one) ? ownAccounts(settings).length : 0;
    const before = own + all.slice(0, index).filter((other) => isSame(other, one)).length;
    const name = azureName(clusterName, one);
    return findings(
      !label.test(namespace) &&
        wants(`${key}.namespace`, namespace, "the name of a namespace", "default"),
      !subdomain.test(serviceAccount) &&
        wants(`${key}.serviceAccount`, serviceAccount, "the name of a service account", "app"),
      isTwice && {
        key,
        is: `is ${namespace}/${serviceAccount} again`,
        expected: "each service account once, since its pods log in as one identity",
        fix: toRemove(key),
      },
      name.length > longestName && {
        key,
        is: `would be called ${name} in Azure`,
        expected: `at most ${longestName} characters there`,
        fix: toRemove(key),
      },
      identityId === "" &&
        roles.length === 0 && {
          key,
          is: "has neither identityId nor roles",
          expected: "the identity that its pods log in as, or what one that is made may do",
          fix: toSet(`${key}.identityId`, exampleIdentity),
        },
      identityId !== "" &&
        roles.length > 0 && {
          key: `${key}.roles`,
          is: "is set beside identityId",
          expected:
            "roles of an identity that this program makes alone; others' have what others give them",
          fix: toRemove(`${key}.roles`),
        },
      ...identityIdProblems(settings, `${key}.identityId`, identityId, exampleIdentity),
      identityId !== "" &&
        before === mostOfIdentity && {
          key,
          is: `is the ${mostOfIdentity + 1}st service account of ${identityId}${own > 0 ? `, with ${own} of the cluster's own` : ""}`,
          expected: `at most ${mostOfIdentity}, which is how many federated credentials Azure takes of an identity`,
          fix: toRemove(key),
        },
      ...roles.flatMap((given, at): (Problem | false)[] => [
        !role.test(given.role) &&
          wants(
            `${key}.roles[${at}].role`,
            given.role,
            "the GUID of a built-in role, or the id of any, as `az role definition list --query '[].name'` prints it",
            "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1",
          ),
        !scope.test(given.scope) &&
          wants(
            `${key}.roles[${at}].scope`,
            given.scope,
            "Azure's id of what the role is given at",
            exampleId("shop"),
          ),
        roles.slice(0, at).some((other) => roleKey(other) === roleKey(given)) && {
          key: `${key}.roles[${at}]`,
          is: `is a role again at ${given.scope}`,
          expected: "each role once at a scope, since Azure assigns it once",
          fix: toRemove(`${key}.roles[${at}]`),
        },
      ]),
    );
  }
}

type Named = Pick<WorkloadIdentity, "identityId">;

const isSame = (one: Named, other: Named): boolean =>
  one.identityId.toLowerCase() === other.identityId.toLowerCase();

/** By which arguments admission by such policies is switched off. */
const offBy: Readonly<Record<string, (entry: string) => boolean>> = {
  "disable-admission-plugins": (plugin) => plugin === admission,
  "feature-gates": (pair) => {
    const [gate, is = ""] = pairOf(pair);
    return gate.replace(/^kube:/, "") === admission && goBoolean(is) === false;
  },
};

/** Pods get what they log in with by a policy of admission; without it they run, and nobody says why they have nothing. */
const withoutPolicies = ({ kubeadm }: Settings): Problem[] =>
  Object.entries(offBy).flatMap(([name, isOff]) => {
    const key = `kubeadm.apiServerExtraArgs.${name}`;
    const given = entriesOf(kubeadm.apiServerExtraArgs[name] ?? "");
    const others = given.filter((one) => !isOff(one));
    if (others.length === given.length) return [];
    return [
      {
        key,
        is: `has ${given.filter(isOff).join(",")} beside workloadIdentities`,
        expected: `${admission} on, since one gives pods the tokens by which they log in to Azure`,
        fix: others.length === 0 ? toRemove(key) : toSet(key, others.join(",")),
      },
    ];
  });

/** What is wrong where control planes are to carry no identity. */
export function machineIdentityProblems(settings: Settings): Problem[] {
  const { machineIdentity, servicePrincipal, workloadIdentities } = settings;
  if (machineIdentity) return [];
  const own = ownAccounts(settings).map(accountKey);
  return findings(
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
  );
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
