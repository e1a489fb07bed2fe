import { azureCloudAt } from "../azure/clouds";
import { namesHost } from "./proxy";
import type { Entra, Settings, WorkloadIdentity } from "./settings";

/** Whether this program makes an identity, roles and role assignments for the cluster. */
export const hasOwnIdentity = ({
  identityId,
  servicePrincipal,
}: Pick<Settings, "identityId" | "servicePrincipal">): boolean =>
  identityId === "" && servicePrincipal === undefined;

/** Whether this program makes an identity by which kubelets pull images. */
export const hasOwnKubeletIdentity = ({
  registries,
  kubeletIdentityId,
}: Pick<Settings, "registries" | "kubeletIdentityId">): boolean =>
  registries.length > 0 && kubeletIdentityId === "";

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

/** Who signs the tokens by which people log in, as tokens name it. */
export const issuerOf = (
  { tenant, issuer }: Entra,
  { resourceManagerEndpoint }: Pick<Settings, "resourceManagerEndpoint">,
): string => issuer || `https://${azureCloudAt(resourceManagerEndpoint).login}/${tenant}/v2.0`;

/** What the names of people and groups begin with, so that none is one of Kubernetes' own, such as `system:masters`. */
export const prefixOf = ({ tenant }: Entra): string => (tenant === "" ? "oidc:" : "entra:");

/** Whether API servers ask it for its keys by the proxy. */
export function isByProxy(
  settings: Pick<Settings, "entra" | "httpProxy" | "resourceManagerEndpoint">,
): boolean {
  const { entra, httpProxy } = settings;
  if (entra === undefined || httpProxy === undefined || httpProxy.https === "") return false;
  const address = issuerOf(entra, settings);
  if (!URL.canParse(address)) return false;
  const { hostname } = new URL(address);
  return !httpProxy.noProxy.some((one) => namesHost(one, hostname));
}
