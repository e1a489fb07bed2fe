import { ConfigMap } from "@pulumi/kubernetes/core/v1";
import { Role, RoleBinding } from "@pulumi/kubernetes/rbac/v1";
import type * as pulumi from "@pulumi/pulumi";

import { machinesMark, turnsName as name } from "../cluster/turns";
import { rbac } from "./cluster-rights";

/**
 * What says which machine is down, and the right of every machine to write it there.
 *
 * A machine that is removed leaves at the end of an update, when this names it no more. Its data are the machines' alone. It would be a Lease, if a kubelet could write any but its own.
 *
 * @see https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
 */
export function turns(machines: readonly string[], opts: pulumi.CustomResourceOptions): void {
  const metadata = { name, namespace: "kube-system" };
  const annotations = { [machinesMark]: machines.join(" ") };
  new ConfigMap("turns", { metadata: { ...metadata, annotations } }, opts);
  const role = new Role(
    "turns-role",
    {
      metadata,
      rules: [
        {
          apiGroups: [""],
          resources: ["configmaps"],
          resourceNames: [name],
          verbs: ["get", "patch"],
        },
      ],
    },
    opts,
  );
  new RoleBinding(
    "turns-binding",
    {
      metadata,
      roleRef: { apiGroup: rbac, kind: "Role", name },
      subjects: [{ apiGroup: rbac, kind: "Group", name: "system:nodes" }],
    },
    { ...opts, dependsOn: role },
  );
}
