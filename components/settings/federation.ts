import type { Settings, WorkloadIdentity } from "./settings";

type Account = Pick<WorkloadIdentity, "namespace" | "serviceAccount">;

/** A service account as one word: a namespace has no dots in its name. */
export const accountKey = ({ namespace, serviceAccount }: Account): string =>
  `${namespace}.${serviceAccount}`;

/** Service accounts of this program's own pods that ask Azure; those of the disk driver are upstream's. */
export const ownAccounts = ({
  cloudProvider,
  diskDriver,
}: Pick<Settings, "cloudProvider" | "diskDriver">): readonly Account[] =>
  [
    ...(cloudProvider ? ["cloud-controller-manager"] : []),
    ...(diskDriver ? ["csi-azuredisk-controller-sa"] : []),
  ].map((serviceAccount) => ({ namespace: "kube-system", serviceAccount }));

/** Whether Entra has to know who signs the tokens of service accounts. */
export const hasIssuer = ({
  workloadIdentities,
  machineIdentity,
}: Pick<Settings, "workloadIdentities" | "machineIdentity">): boolean =>
  workloadIdentities.length > 0 || !machineIdentity;
