import {
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from "@pulumi/kubernetes/admissionregistration/v1";
import { ClusterRole, ClusterRoleBinding } from "@pulumi/kubernetes/rbac/v1";
import type { input } from "@pulumi/kubernetes/types";
import type * as pulumi from "@pulumi/pulumi";

import { prefixOf } from "../settings/logins";
import type { Entra } from "../settings/settings";

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

/** Lets people of the groups that are called admins do everything. */
export const adminsBinding = (entra: Entra) => ({
  metadata: { name: "zoned:login-admins" },
  roleRef: { apiGroup: rbac, kind: "ClusterRole", name: "cluster-admin" },
  subjects: entra.admins.map((group) => ({
    apiGroup: rbac,
    kind: "Group",
    name: `${prefixOf(entra)}${group}`,
  })),
});

export const loginAdmins = (entra: Entra, opts: pulumi.CustomResourceOptions) =>
  new ClusterRoleBinding("login-admins", adminsBinding(entra), opts);

/** What service accounts may not do in spite of their rights: a policy, and the binding by which it denies that. */
export function deniedBy(
  prefix: string,
  metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> },
  spec: input.admissionregistration.v1.ValidatingAdmissionPolicySpec,
  opts: pulumi.CustomResourceOptions,
): pulumi.Resource {
  const policy = new ValidatingAdmissionPolicy(`${prefix}-policy`, { metadata, spec }, opts);
  return new ValidatingAdmissionPolicyBinding(
    `${prefix}-policy-binding`,
    { metadata, spec: { policyName: metadata.name, validationActions: ["Deny"] } },
    { ...opts, dependsOn: [policy] },
  );
}
