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

export const workloadIdentityCases: Cases = {
  refused: [
    ["one map in place of a list", { workloadIdentities: app }, "expected a list of namespace"],
    [
      "a namespace that is none",
      { workloadIdentities: [{ ...app, namespace: "Shop", roles }] },
      'workloadIdentities[0].namespace is "Shop", expected the name of a namespace',
    ],
    [
      "a service account without a name",
      { workloadIdentities: [{ namespace: "shop", roles }] },
      "workloadIdentities[0].serviceAccount is not set",
    ],
    [
      "a service account that nobody logs in as",
      { workloadIdentities: [app] },
      "workloadIdentities[0] has neither identityId nor roles",
    ],
    [
      "roles for an identity of others",
      { workloadIdentities: [{ ...app, identityId, roles }] },
      "workloadIdentities[0].roles is set beside identityId",
    ],
    [
      "an identity by its client id",
      { workloadIdentities: [{ ...app, identityId: role }] },
      "expected Azure's id of a user-assigned identity",
    ],
    [
      "an identity that goes with the cluster",
      {
        clusterName: "mine",
        workloadIdentities: [
          { ...app, identityId: identityId.replace("/shop/providers", "/Mine/providers") },
        ],
      },
      "in another resource group than mine",
    ],
    [
      "a role by its name",
      { workloadIdentities: [{ ...app, roles: [{ ...roles[0], role: "Reader" }] }] },
      'workloadIdentities[0].roles[0].role is "Reader", expected the GUID',
    ],
    [
      "a role at no place",
      { workloadIdentities: [{ ...app, roles: [{ role }] }] },
      "workloadIdentities[0].roles[0].scope is not set",
    ],
    [
      "a role twice, by its GUID and by its id",
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
      "a service account twice",
      {
        workloadIdentities: [
          { ...app, roles },
          { ...app, identityId },
        ],
      },
      "workloadIdentities[1] is shop/app again",
    ],
    [
      "more service accounts than an identity takes",
      { workloadIdentities: many(21) },
      "workloadIdentities[20] is the 21st service account",
    ],
    [
      "more than an identity takes beside the cluster's own pods",
      { workloadIdentities: many(19), machineIdentity: false, identityId },
      `workloadIdentities[18] is the 21st service account of ${identityId}, with 2 of the cluster's own`,
    ],
    [
      "a name that Azure would not take",
      { workloadIdentities: [{ ...app, serviceAccount: "a".repeat(120), roles }] },
      "expected at most 120 characters there",
    ],
    [
      "an issuer of one's own beside it",
      {
        workloadIdentities: [{ ...app, roles }],
        kubeadm: { apiServerExtraArgs: { "service-account-issuer": "https://ours.example" } },
      },
      "kubeadm.apiServerExtraArgs.service-account-issuer is set beside workloadIdentities",
    ],
    [
      "API servers without the policies that give pods their tokens",
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
      "API servers whose feature gate has them without",
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
