import type { ClusterSpec, KubeadmSettings } from "../../components/kubeadm/kubeadm";
import { only } from "../../components/kubeadm/rotations";
import { Settings, WorkerPool } from "../../components/settings/settings";
import { MachinePlan } from "../../components/settings/topology";
import { versions } from "../../components/versions";

export const subscriptionId = "3f1f6c52-8f0e-4b0c-9a52-4a3f6b0f7e11";

/** Azure's id of what is in this group; its path begins with the provider. */
export const idIn = (group: string, path: string): string =>
  `/subscriptions/${subscriptionId}/resourceGroups/${group}/providers/${path}`;

export const pool: WorkerPool = {
  name: "workers",
  count: 3,
  size: "Standard_D2s_v5",
  zones: ["1", "2", "3"],
  labels: {},
  taints: [],
  osDiskSku: "Premium_LRS",
  osDiskSizeGb: 64,
  maxUnavailable: 1,
};

/** Valid settings; each test makes one change to it. */
export const validSettings: Settings = {
  clusterName: "zoned-test",
  resourceGroup: "",
  location: "westeurope",
  zones: ["1", "2", "3"],
  networkCidr: "172.16.0.0/16",
  podCidr: "10.244.0.0/16",
  serviceCidr: "10.96.0.0/12",
  nodeSubnets: [],
  workloadIdentities: [],
  egress: "zonal",
  apiAccess: "public",
  apiName: "",
  apiAccessCidrs: ["203.0.113.0/24"],
  apiProxy: "",
  sshAccessCidrs: [],
  apiExtraSans: [],
  adminUsername: "azureuser",
  sshPublicKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample operator",
  imageVersion: "",
  image: "",
  kubernetesVersion: versions.kubernetes,
  controlPlaneCount: 3,
  controlPlaneSize: "Standard_D2s_v5",
  schedulableControlPlanes: true,
  workerPools: [pool],
  osDiskSku: "Premium_LRS",
  osDiskSizeGb: 64,
  encryptionAtHost: false,
  autoRepair: false,
  diskEncryptionSetId: "",
  containerRuntime: "docker",
  proxyMode: "ipvs",
  proxyScheduler: "rr",
  kubeProxy: {},
  cni: "canal",
  cloudProvider: true,
  diskDriver: true,
  storageClasses: true,
  metricsServer: false,
  identityId: "",
  machineIdentity: true,
  registries: [],
  kubeletIdentityId: "",
  registryCredentials: {},
  kubeadm: {
    apiServerExtraArgs: {},
    controllerManagerExtraArgs: {},
    schedulerExtraArgs: {},
    etcdExtraArgs: {},
    kubeletExtraArgs: {},
    ignorePreflightErrors: [],
    timeouts: {},
    patches: {},
  },
  encryptionKeyGeneration: 1,
  caGeneration: 1,
  serviceAccountKeyGeneration: 1,
  mirror: "",
  tags: {},
  resourceManagerEndpoint: "https://management.azure.com",
  protect: false,
  drainMinutes: 15,
  reinitialize: "",
  restoreFrom: "",
  skipHealthCheckUntil: "",
};

/** The first control plane machine of the valid settings. */
export const machine: MachinePlan = {
  name: "zoned-test-cp-1",
  role: "control-plane",
  zone: "2",
  subnetCidr: "172.16.2.0/24",
  address: "172.16.2.4",
  size: "Standard_D2s_v5",
  labels: {},
  taints: [],
  osDiskSku: "Premium_LRS",
  osDiskSizeGb: 64,
};

/** The keys that a cluster begins with. */
export const firstKeys = { cas: only(1), serviceAccountKeys: only(1) };

/** What every update leaves beside names, settings and machines, here of a cluster without tags and classes. */
export const alwaysLeft = { ...firstKeys, balancer: "a hash", storageClasses: [], tags: [] };

/** What members of a cluster with these agree on. */
export const specOf = (
  settings: KubeadmSettings = validSettings,
  more: Partial<ClusterSpec> = {},
): ClusterSpec => ({
  settings,
  apiName: "zoned-test-1a2b3c.westeurope.cloudapp.azure.com",
  ...firstKeys,
  publishedIssuer: "https://oidc.example/issuer",
  registries: [],
  ...more,
});

export const certRequest = "tls:index/certRequest:CertRequest";
export const locallySignedCert = "tls:index/locallySignedCert:LocallySignedCert";

/** What the tls provider computes, as texts that name their resource; for `Recorder.start`. */
export const filledInCertificates = {
  "tls:index/privateKey:PrivateKey": ({ name }: { name: string }) => ({
    privateKeyPem: `private ${name}`,
  }),
  "tls:index/selfSignedCert:SelfSignedCert": ({ name }: { name: string }) => ({
    certPem: `cert ${name}`,
  }),
  [certRequest]: ({ name }: { name: string }) => ({ certRequestPem: `request ${name}` }),
  [locallySignedCert]: ({ name }: { name: string }) => ({
    certPem: `cert ${name}`,
    validityEndTime: `end of ${name}`,
  }),
};
