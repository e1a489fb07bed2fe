import { idIn, subscriptionId } from "../sample";
import type { Cases } from "../stack";

const subscription = `/subscriptions/${subscriptionId}`;
const identityId = idIn("shop", "Microsoft.ManagedIdentity/userAssignedIdentities/shop");
const role = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1";
const roles = [{ role, scope: `${subscription}/resourceGroups/shop` }];
const app = { namespace: "shop", serviceAccount: "app" };
const many = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    ...app,
    serviceAccount: `app-${index}`,
    identityId,
  }));

/** One that is called by a name of so many characters in Azure, where the cluster's and the namespace's precede it. */
const named = (length: number) => ({
  clusterName: "zoned-test",
  workloadIdentities: [
    { ...app, serviceAccount: "a".repeat(length - "zoned-test_shop_".length), roles },
  ],
});

export const workloadIdentityCases: Cases = {
  refused: [
    [{ workloadIdentities: app }, "expected a list of namespace"],
    [
      { workloadIdentities: [{ ...app, namespace: "Shop", roles }] },
      'workloadIdentities[0].namespace is "Shop", expected the name of a namespace',
    ],
    [
      { workloadIdentities: [{ namespace: "shop", roles }] },
      "workloadIdentities[0].serviceAccount is not set",
    ],
    [{ workloadIdentities: [app] }, "workloadIdentities[0] has neither identityId nor roles"],
    [
      { workloadIdentities: [{ ...app, identityId, roles }] },
      "workloadIdentities[0].roles is set beside identityId",
    ],
    [
      { workloadIdentities: [{ ...app, identityId: role }] },
      "expected Azure's id of a user-assigned identity",
    ],
    [
      {
        clusterName: "mine",
        workloadIdentities: [
          { ...app, identityId: identityId.replace("/shop/providers", "/Mine/providers") },
        ],
      },
      "in another resource group than mine",
    ],
    [
      { workloadIdentities: [{ ...app, roles: [{ ...roles[0], role: "Reader" }] }] },
      'workloadIdentities[0].roles[0].role is "Reader", expected the GUID',
    ],
    [
      { workloadIdentities: [{ ...app, roles: [{ role }] }] },
      "workloadIdentities[0].roles[0].scope is not set",
    ],
    [
      {
        workloadIdentities: [
          {
            ...app,
            roles: [
              ...roles,
              {
                role: `${subscription}/providers/Microsoft.Authorization/roleDefinitions/${role}`,
                scope: roles[0]!.scope.toUpperCase(),
              },
            ],
          },
        ],
      },
      "workloadIdentities[0].roles[1] is a role again at",
    ],
    [
      {
        workloadIdentities: [
          { ...app, roles },
          { ...app, identityId },
        ],
      },
      "workloadIdentities[1] is shop/app again",
    ],
    [{ workloadIdentities: many(21) }, "workloadIdentities[20] is the 21st service account"],
    [
      { workloadIdentities: many(19), machineIdentity: false, identityId },
      `workloadIdentities[18] is the 21st service account of ${identityId}, with 2 of the cluster's own`,
    ],
    [named(121), "expected at most 120 characters there"],
    [
      {
        workloadIdentities: [{ ...app, roles }],
        kubeadm: { apiServerExtraArgs: { "service-account-issuer": "https://ours.example" } },
      },
      "kubeadm.apiServerExtraArgs.service-account-issuer is set beside workloadIdentities",
    ],
    [
      {
        workloadIdentities: [{ ...app, roles }],
        kubeadm: {
          apiServerExtraArgs: {
            "disable-admission-plugins": "MutatingAdmissionPolicy,DefaultStorageClass",
          },
        },
      },
      "pulumi config set --path kubeadm.apiServerExtraArgs.disable-admission-plugins DefaultStorageClass",
    ],
    [
      {
        workloadIdentities: [{ ...app, roles }],
        kubeadm: {
          apiServerExtraArgs: {
            "feature-gates": "AllAlpha=false,kube:MutatingAdmissionPolicy=F",
          },
        },
      },
      "pulumi config set --path kubeadm.apiServerExtraArgs.feature-gates 'AllAlpha=false'",
    ],
  ],
  accepted: [
    ["the longest name that Azure takes", named(120)],
    [
      "API servers without these policies where no pod logs in by them",
      {
        machineIdentity: false,
        kubeadm: {
          apiServerExtraArgs: {
            "disable-admission-plugins": "MutatingAdmissionPolicy",
            "feature-gates": "MutatingAdmissionPolicy=false",
          },
        },
      },
    ],
    [
      "the feature gate of these policies, switched on",
      {
        workloadIdentities: [{ ...app, roles }],
        kubeadm: { apiServerExtraArgs: { "feature-gates": "MutatingAdmissionPolicy=true" } },
      },
    ],
    ["as many service accounts as an identity takes", { workloadIdentities: many(20) }],
    [
      "a service account with a role of one's own",
      {
        workloadIdentities: [
          {
            ...app,
            roles: [
              {
                role: `${subscription}/providers/Microsoft.Authorization/roleDefinitions/${role}`,
                scope: subscription,
              },
            ],
          },
        ],
      },
    ],
  ],
};

const container = idIn(
  "backups",
  "Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd",
);
const without = { machineIdentity: false };

export const machineIdentityCases: Cases = {
  refused: [
    [
      {
        ...without,
        workloadIdentities: [
          { namespace: "kube-system", serviceAccount: "cloud-controller-manager", identityId },
        ],
      },
      "none of this program's own, which",
    ],
    [{ ...without, autoRepair: true }, "machineIdentity is false beside autoRepair"],
    [
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
