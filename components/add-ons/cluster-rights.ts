import { ClusterRole, ClusterRoleBinding } from "@pulumi/kubernetes/rbac/v1";
import type * as pulumi from "@pulumi/pulumi";

interface Account {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

interface Rule {
  readonly apiGroups: string[];
  readonly resources: string[];
  readonly verbs: string[];
}

export const rbac = "rbac.authorization.k8s.io";

export const subjectsOf = ({ name, namespace }: Account) => [
  { kind: "ServiceAccount", name, namespace },
];

/** What a service account may do in the whole cluster: a role, called like it, that is bound to it. */
export function clusterRights(
  prefix: string,
  account: Account,
  rules: Rule[],
  opts: pulumi.CustomResourceOptions,
  name = account.name,
): pulumi.Resource[] {
  const metadata = { name, labels: account.labels };
  const roleRef = { apiGroup: rbac, kind: "ClusterRole", name };
  return [
    new ClusterRole(`${prefix}-role`, { metadata, rules }, opts),
    new ClusterRoleBinding(
      `${prefix}-binding`,
      { metadata, roleRef, subjects: subjectsOf(account) },
      opts,
    ),
  ];
}
