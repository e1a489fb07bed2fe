import type * as pulumi from "@pulumi/pulumi";

/** A taint as the kubelet registers it. */
export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
}

/** What an OS disk is made of. */
export type OsDiskSku = "Premium_LRS" | "StandardSSD_LRS";

/** Which of a host's own disks an OS disk lies on. */
export type LocalDisk = "CacheDisk" | "ResourceDisk" | "NvmeDisk";

/** Machines of capacity that Azure can spare, and takes back when it can no more. */
export interface Spot {
  /** What Azure does with a machine that it takes back. */
  readonly evictionPolicy: "Delete" | "Deallocate";
  /** US dollars an hour; undefined for up to the price of a regular machine. */
  readonly maxPrice?: number;
}

/** Workers that are alike. */
export interface WorkerPool {
  /** Machines are called `<clusterName>-<name>-1` and so on. */
  readonly name: string;
  readonly count: number;
  readonly size: string;
  /** Dealt out in turn from the second, since control planes start at the first. */
  readonly zones: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly osDiskSku: OsDiskSku;
  readonly osDiskSizeGb: number;
  /** Undefined for OS disks in Azure's storage. */
  readonly ephemeralOsDisk?: LocalDisk;
  /** How many pods a machine takes; undefined for the kubelet's own number, 110. */
  readonly maxPods?: number;
  /** Undefined for regular machines. */
  readonly spot?: Spot;
  /**
   * How many of the pool's living machines change at a time.
   *
   * @default 1
   */
  readonly maxUnavailable: number;
}

/** What an operator adds to kubeadm's configuration; all empty unless set. */
export interface KubeadmExtras {
  readonly apiServerExtraArgs: Readonly<Record<string, string>>;
  readonly controllerManagerExtraArgs: Readonly<Record<string, string>>;
  readonly schedulerExtraArgs: Readonly<Record<string, string>>;
  readonly etcdExtraArgs: Readonly<Record<string, string>>;
  readonly kubeletExtraArgs: Readonly<Record<string, string>>;
  /** Names of kubeadm's checks that only warn then, such as `NumCPU`. */
  readonly ignorePreflightErrors: readonly string[];
  /** Fields of v1beta4's Timeouts, such as `controlPlaneComponentHealthCheck: 10m0s`. */
  readonly timeouts: Readonly<Record<string, string>>;
  /** Text of each patch by file name, which kubeadm reads as `target[suffix][+type].extension`. */
  readonly patches: Readonly<Record<string, string>>;
}

/** What has arguments of its own in {@link KubeadmExtras}. */
export type Component = Extract<keyof KubeadmExtras, `${string}ExtraArgs`>;

export const weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;

/** When machines may be rebooted, in UTC. */
export interface Reboots {
  /** Of {@link weekdays}. */
  readonly days: readonly string[];
  /** Such as 02:00. */
  readonly from: string;
  /** On the same day, such as 05:00. */
  readonly to: string;
}

/** Where and how often etcd is saved. */
export interface EtcdBackups {
  /**
   * Azure's id of a blob container, for which etcd-backups.ts has a form. Without one, snapshots lie
   * on the control planes' own disks.
   */
  readonly container?: string;
  /** Such as 1h or 30m. */
  readonly every: string;
  /** Where the container's account is reached, when that is not under its public name. */
  readonly endpoint?: string;
}

/** The way to the internet where that is a proxy. */
export interface HttpProxy {
  /**
   * For addresses that begin with http, such as http://proxy.example:3128; empty for none. With a user and a
   * password in it, it is a secret.
   */
  readonly http: string;
  /** The same for those that begin with https. */
  readonly https: string;
  /** Names, domains and ranges that are reached without it, besides the cluster's own. */
  readonly noProxy: readonly string[];
  /** Certificates of the CAs by which the proxy answers in others' names, as PEM; empty for none. */
  readonly ca: string;
}

/** By what kubelets log in to a registry. */
export interface RegistryCredential {
  readonly username: string;
  readonly password: string;
}

/** A role in Azure, and where it is given. */
export interface GivenRole {
  /** The GUID of a built-in role, or the id of any. */
  readonly role: string;
  /** Azure's id of what it is given at. */
  readonly scope: string;
}

/** A service account whose pods log in to Azure as a managed identity. */
export interface WorkloadIdentity {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** Azure's id of a user-assigned identity that exists already; empty for one that this program makes. */
  readonly identityId: string;
  /** Of one that this program makes. */
  readonly roles: readonly GivenRole[];
}

/** By whose tokens people log in at the API: a tenant of Entra ID, or another issuer of OpenID Connect. */
export interface Entra {
  /** Empty beside {@link issuer}. */
  readonly tenant: string;
  /** Another issuer's address, as its tokens name it; empty beside {@link tenant}. */
  readonly issuer: string;
  /** Client id of the application that tokens are for. */
  readonly application: string;
  /** Groups that may do everything: object ids, or names of another issuer. */
  readonly admins: readonly string[];
  /** The claim that names a person, of another issuer. */
  readonly usernameClaim: string;
  /** The claim that lists a person's groups, of another issuer. */
  readonly groupsClaim: string;
  /** Certificates of the CAs by which another issuer proves itself, as PEM; empty for those that machines trust. */
  readonly ca: string;
}

/** This stack's settings. Pulumi.yaml explains each under the same name. */
export interface Settings {
  readonly clusterName: string;
  /** Name of a resource group that exists already; empty for one that this program makes. */
  readonly resourceGroup: string;
  readonly location: string;
  readonly zones: readonly string[];
  readonly networkCidr: string;
  readonly podCidr: string;
  readonly serviceCidr: string;
  /**
   * Azure's ids of subnets that exist already: one for all zones, or one for each, in the order of
   * {@link zones}. Empty for a network that this program makes.
   */
  readonly nodeSubnets: readonly string[];
  readonly egress: "zonal" | "single" | "none";
  readonly apiAccess: "public" | "private";
  /** In DNS of the operator's own; empty for a name that this program makes. */
  readonly apiName: string;
  readonly apiAccessCidrs: readonly string[];
  /** Of an HTTP proxy; empty where the API is reached directly. */
  readonly apiProxy: string;
  readonly sshAccessCidrs: readonly string[];
  readonly apiExtraSans: readonly string[];
  readonly adminUsername: string;
  readonly sshPublicKey: string;
  /** Empty for the default, which replaces no machine when it changes. */
  readonly imageVersion: string;
  /** A gallery image version, by Azure's id; empty for the image of the marketplace. */
  readonly image: string;
  readonly kubernetesVersion: string;
  readonly controlPlaneCount: number;
  readonly controlPlaneSize: string;
  readonly schedulableControlPlanes: boolean;
  readonly workerPools: readonly WorkerPool[];
  /** Of control planes, and of pools that name none. */
  readonly osDiskSku: OsDiskSku;
  /** The same. */
  readonly osDiskSizeGb: number;
  /**
   * Whether a machine's host encrypts its caches and temporary disk. Azure changes it on a deallocated machine
   * alone; here a machine is made anew for it, as for all that is its disk's.
   *
   * @see https://learn.microsoft.com/azure/virtual-machines/linux/disks-enable-host-based-encryption-cli
   */
  readonly encryptionAtHost: boolean;
  /**
   * Azure's id of a disk encryption set, for OS disks and StorageClasses; empty for keys that Azure keeps. An OS
   * disk gets another set while its machine is deallocated alone; here the machine is made anew.
   *
   * @see https://learn.microsoft.com/azure/virtual-machines/disk-encryption
   */
  readonly diskEncryptionSetId: string;
  readonly containerRuntime: "docker" | "cri-dockerd" | "containerd";
  readonly proxyMode: "ipvs" | "nftables" | "iptables";
  readonly proxyScheduler: string;
  /** Fields of KubeProxyConfiguration besides the program's own; empty unless set. */
  readonly kubeProxy: Readonly<Record<string, unknown>>;
  readonly cni: "canal" | "flannel" | "none";
  readonly cloudProvider: boolean;
  readonly diskDriver: boolean;
  readonly storageClasses: boolean;
  readonly metricsServer: boolean;
  /** Azure's id of a managed identity that exists already; empty for one that this program makes. */
  readonly identityId: string;
  /**
   * Whether control planes carry the cluster's identity. Without it the cloud provider, the disk driver and etcd's
   * snapshots log in by tokens of service accounts.
   */
  readonly machineIdentity: boolean;
  /** Azure's ids of container registries that kubelets pull images from; empty for none. */
  readonly registries: readonly string[];
  /**
   * Azure's id of the managed identity by which they pull, that exists already; empty for one that this program
   * makes where there are {@link registries}.
   */
  readonly kubeletIdentityId: string;
  /**
   * Of other registries, or parts of them, that kubelets pull images from, such as ghcr.io or
   * registry.example:5000/team; empty for none.
   */
  readonly registryCredentials: Readonly<Record<string, RegistryCredential>>;
  /** Given when there is no managed identity to use. */
  readonly servicePrincipal?: {
    readonly clientId: string;
    readonly clientSecret: pulumi.Output<string>;
  };
  /** Service accounts that Entra knows; empty for none. */
  readonly workloadIdentities: readonly WorkloadIdentity[];
  /** Undefined where only certificates and tokens of service accounts are admitted. */
  readonly entra?: Entra;
  readonly kubeadm: KubeadmExtras;
  /** Whether a worker that is not Ready is restarted, then redeployed. */
  readonly autoRepair: boolean;
  /** Undefined when nothing reboots machines. */
  readonly reboots?: Reboots;
  /** Undefined when etcd is not saved. */
  readonly etcdBackups?: EtcdBackups;
  /** Number of the key by which Secrets are encrypted in etcd; 0 for none. */
  readonly encryptionKeyGeneration: number;
  /** Number of the CAs that sign the cluster's certificates. */
  readonly caGeneration: number;
  /** Number of the key that signs the tokens of service accounts. */
  readonly serviceAccountKeyGeneration: number;
  /** Empty for the official sources. */
  readonly mirror: string;
  /** Undefined when machines reach the internet directly, or by a mirror. */
  readonly httpProxy?: HttpProxy;
  /** On every resource that takes tags, and on what the cloud provider and the disk driver make. */
  readonly tags: Readonly<Record<string, string>>;
  readonly resourceManagerEndpoint: string;
  readonly protect: boolean;
  /** Minutes that pods and their budgets may hold a machine that is to go. */
  readonly drainMinutes: number;
  /** The initialization whose cluster may be lost; empty for none. */
  readonly reinitialize: string;
  /** The snapshot that a lost cluster is restored from: its name, or `latest`; empty for none. */
  readonly restoreFrom: string;
  /** As in times.ts; empty for never. */
  readonly skipHealthCheckUntil: string;
}
