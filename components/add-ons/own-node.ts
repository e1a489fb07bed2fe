import type * as pulumi from "@pulumi/pulumi";

import type { Settings } from "../settings/settings";
import { deniedBy } from "./cluster-rights";

type Parts = Pick<Settings, "cni" | "cloudProvider" | "diskDriver" | "reboots">;

/** Service accounts of pods on every machine that may write Nodes. */
const accountsOf = ({ cni, cloudProvider, diskDriver, reboots }: Parts): string[] =>
  [
    cni === "canal" && "kube-system:canal",
    cni === "flannel" && "kube-flannel:flannel",
    cloudProvider && "kube-system:cloud-node-manager",
    diskDriver && "kube-system:csi-azuredisk-node-sa",
    reboots !== undefined && "kube-system:kured",
  ].flatMap((account) => (account ? [`system:serviceaccount:${account}`] : []));

const nodeName = "authentication.kubernetes.io/node-name";
const rolePrefix = "node-role.kubernetes.io/";

/**
 * Keeps pods on every machine to their own Node, and from giving it a role. NodeRestriction binds kubelets alone:
 * who is root on a worker could otherwise have the scheduler take it for a control plane, and send it the pods that
 * log in at Azure.
 *
 * The API server says of a token that is bound to a pod on which machine that is.
 *
 * @returns what these pods' rights depend on; nothing where there are none
 * @see https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#bound-service-account-tokens
 */
export function ownNodePolicy(
  settings: Parts,
  opts: pulumi.CustomResourceOptions,
): pulumi.Resource[] {
  const accounts = accountsOf(settings);
  if (accounts.length === 0) return [];
  const spec = {
    failurePolicy: "Fail",
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: [""],
          apiVersions: ["v1"],
          operations: ["UPDATE"],
          // Labels can be written by way of the status too.
          resources: ["nodes", "nodes/status"],
        },
      ],
    },
    matchConditions: [
      {
        name: "is-on-every-machine",
        expression: `request.userInfo.username in ${JSON.stringify(accounts)}`,
      },
    ],
    validations: [
      {
        expression: `request.userInfo.?extra[?'${nodeName}'].orValue([]) == [object.metadata.name]`,
        message: "a pod that runs on every machine may change its own Node, and no other",
      },
      {
        expression:
          `object.metadata.?labels.orValue({}).all(key, !key.startsWith('${rolePrefix}') || ` +
          "key in oldObject.metadata.?labels.orValue({}))",
        message: `a pod that runs on every machine may give no Node a label ${rolePrefix}…`,
      },
    ],
  };
  return [deniedBy("own-node", { name: "zoned-own-node" }, spec, opts)];
}
