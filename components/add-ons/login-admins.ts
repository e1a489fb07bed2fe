import { ClusterRoleBinding } from "@pulumi/kubernetes/rbac/v1";
import type * as pulumi from "@pulumi/pulumi";

import { prefixOf } from "../settings/logins";
import type { Entra } from "../settings/settings";
import { rbac } from "./cluster-rights";

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
