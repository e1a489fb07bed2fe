import { idIn } from "../sample";
import type { Cases } from "./case";

const container = idIn(
  "backups",
  "Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd",
);
const without = { machineIdentity: false };
const identityId = idIn("shop", "Microsoft.ManagedIdentity/userAssignedIdentities/shop");

export const machineIdentityCases: Cases = {
  refused: [
    [
      "this program's own pods as somebody else",
      {
        ...without,
        workloadIdentities: [
          { namespace: "kube-system", serviceAccount: "cloud-controller-manager", identityId },
        ],
      },
      "none of this program's own, which",
    ],
    [
      "control planes without an identity that repair machines by it",
      { ...without, autoRepair: true },
      "machineIdentity is false beside autoRepair",
    ],
    [
      "another issuer than the one that Entra would ask",
      {
        ...without,
        kubeadm: { apiServerExtraArgs: { "service-account-issuer": "https://ours.example" } },
      },
      "is set beside machineIdentity false",
    ],
  ],
  accepted: [
    ["control planes without an identity", without],
    ["the same with snapshots on their disks", { ...without, etcdBackups: { every: "2h" } }],
    ["the same with snapshots in a container", { ...without, etcdBackups: { container } }],
    ["the same with an identity of others", { ...without, identityId }],
    ["control planes that repair machines by their identity", { autoRepair: true }],
  ],
};
