import type { Settings, WorkloadIdentity } from "./settings";

type Account = Pick<WorkloadIdentity, "namespace" | "serviceAccount">;

/** A service account as one word: a namespace has no dots in its name. */
export const accountKey = ({ namespace, serviceAccount }: Account): string =>
  `${namespace}.${serviceAccount}`;

/** As the API server and Entra know it. */
export const subjectOf = ({ namespace, serviceAccount }: Account): string =>
  `system:serviceaccount:${namespace}:${serviceAccount}`;

const inSystem = (serviceAccount: string): Account => ({
  ...{ namespace: "kube-system", serviceAccount },
});

/** No pod has it: control planes sign its tokens, by which they write snapshots and read one before there is an API. */
export const snapshotAccount = inSystem("zoned-etcd-snapshot");

/** Service accounts as which this program's own parts ask Azure; those of the disk driver are upstream's. */
export const ownAccounts = ({
  cloudProvider,
  diskDriver,
  etcdBackups,
}: Pick<Settings, "cloudProvider" | "diskDriver" | "etcdBackups">): readonly Account[] => [
  ...(cloudProvider ? [inSystem("cloud-controller-manager")] : []),
  ...(diskDriver ? [inSystem("csi-azuredisk-controller-sa")] : []),
  ...(etcdBackups?.container === undefined ? [] : [snapshotAccount]),
];

/** Whether Entra has to know who signs the tokens of service accounts. */
export const hasIssuer = ({
  workloadIdentities,
  machineIdentity,
}: Pick<Settings, "workloadIdentities" | "machineIdentity">): boolean =>
  workloadIdentities.length > 0 || !machineIdentity;
