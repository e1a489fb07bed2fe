import { stringify } from "yaml";

import { apiServerSecurity, cipherSuites } from "./api-server-security";
import {
  areFirst,
  authoritiesVariable,
  type RotationState,
  type ServiceAccountKeys,
  serviceAccountKeysVariable,
  signingFile,
} from "./rotations";
import { coreDnsPatch } from "./core-dns";
import { encryptionFlags, encryptionVolume, isOurs } from "./encryption";
import { kubeProxyConfiguration } from "./kube-proxy";
import {
  admissionPlugins,
  type Arguments,
  issuerFlag,
  mergedValues,
  reservedMemory,
  withDefault,
} from "./merged-arguments";
import { kubeletCertificatePath, kubeletKeyPath, type PayloadFile } from "./payload-file";
import { issuerVariables } from "./people";
import { isEveryCheck } from "../settings/rules/kubeadm";
import type { Component, Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";
import { credentialProvider } from "./registries";
import { digest } from "../digest";
import { keysUrl } from "../token-issuer";
import { encryptionAlgorithm } from "../key-algorithm";
import { apiPort } from "../api-server";
import { minorFor } from "../versions";

/** The API server that a machine joins, and the credential for it. */
const discoveryPath = "/etc/zoned/discovery.conf";

/** Profiles disclose a lot about a server, and are not used here. */
const quiet = { profiling: "false" };

const patchesDirectory = "/etc/zoned/patches";

const apiVersion = "kubeadm.k8s.io/v1beta4";

/** What kubeadm changes in what it deploys on a machine, as text by file name. */
function patchesOf(settings: KubeadmSettings, { role }: KubeadmMachine): Record<string, string> {
  const coreDns = role === "control-plane" ? coreDnsPatch(settings) : undefined;
  return {
    // One of the operator's by the same name takes its place.
    ...(coreDns !== undefined && { "corednsdeployment+strategic.yaml": coreDns }),
    ...settings.kubeadm.patches,
  };
}

/** A worker always has one: that of its kubeReserved, which its bootstrap step writes (reservations.sh). */
const withPatches = (settings: KubeadmSettings, machine: KubeadmMachine) =>
  (machine.role === "worker" || Object.keys(patchesOf(settings, machine)).length > 0) && {
    patches: { directory: patchesDirectory },
  };

/** A full etcd refuses writes until an operator repairs it; upstream advises no more than this. */
const etcdQuotaBytes = 8 * 1024 ** 3;

export type KubeadmSettings = Pick<
  Settings,
  | "clusterName"
  | "kubernetesVersion"
  | "networkCidr"
  | "podCidr"
  | "serviceCidr"
  | "apiExtraSans"
  | "zones"
  | "controlPlaneCount"
  | "controlPlaneSize"
  | "schedulableControlPlanes"
  | "workerPools"
  | "osDiskSku"
  | "osDiskSizeGb"
  | "containerRuntime"
  | "proxyMode"
  | "proxyScheduler"
  | "kubeProxy"
  | "entra"
  | "kubeadm"
  | "mirror"
  | "httpProxy"
  | "resourceManagerEndpoint"
>;

export type KubeadmMachine = Pick<MachinePlan, "name" | "role" | "address" | "taints" | "maxPods">;

const sorted = (values: Arguments): Arguments => Object.fromEntries(Object.entries(values).sort());

/**
 * v1beta4's list. The operator's arguments replace ours in place, or come after them by name; lists
 * are merged.
 */
const args = (
  component: Component,
  ours: Readonly<Record<string, string | readonly string[]>>,
  operators: Arguments,
) =>
  Object.entries({ ...ours, ...sorted(operators) }).flatMap(([name, value]) => {
    const theirs = operators[name];
    const values =
      theirs === undefined ? [value].flat() : mergedValues(component, name, theirs, operators);
    return values.map((one) => ({ name, value: one }));
  });

/** A host with Docker has two sockets, and kubeadm refuses to guess. */
const criSocket = ({ containerRuntime }: KubeadmSettings) =>
  containerRuntime === "cri-dockerd"
    ? "unix:///run/cri-dockerd.sock"
    : "unix:///run/containerd/containerd.sock";

const nodeRegistration = (
  { settings, registries }: ClusterSpec,
  { name, address, taints, maxPods }: KubeadmMachine,
) => ({
  name,
  criSocket: criSocket(settings),
  ...(settings.kubeadm.ignorePreflightErrors.length > 0 && {
    ignorePreflightErrors: [...settings.kubeadm.ignorePreflightErrors].sort(),
  }),
  // Left out, kubeadm would taint control planes; an empty list means none.
  taints: taints.map(({ key, value, effect }) => ({ key, value, effect })),
  kubeletExtraArgs: args(
    "kubeletExtraArgs",
    {
      "cloud-provider": "external",
      // Else a node has no address before the cloud provider runs, and that needs it (kube-proxy).
      "node-ip": address,
      ...(maxPods !== undefined && { "max-pods": String(maxPods) }),
      ...credentialProvider(registries).flags,
    },
    settings.kubeadm.kubeletExtraArgs,
  ),
});

/** What init and join have in common. */
const shared = (spec: ClusterSpec, machine: KubeadmMachine) => ({
  nodeRegistration: nodeRegistration(spec, machine),
  timeouts: sorted(spec.settings.kubeadm.timeouts),
  ...withPatches(spec.settings, machine),
});

const localAPIEndpoint = ({ address: advertiseAddress }: KubeadmMachine) => ({
  advertiseAddress,
  bindPort: apiPort,
});

const initConfiguration = (spec: ClusterSpec, machine: KubeadmMachine) => ({
  apiVersion,
  kind: "InitConfiguration",
  localAPIEndpoint: localAPIEndpoint(machine),
  // kubeadm always makes a bootstrap token; it is not used here, so it expires at once.
  bootstrapTokens: [{ description: "unused", ttl: "1m0s" }],
  ...shared(spec, machine),
});

const joinConfiguration = (spec: ClusterSpec, machine: KubeadmMachine) => ({
  apiVersion,
  kind: "JoinConfiguration",
  discovery: { file: { kubeConfigPath: discoveryPath } },
  ...(machine.role === "control-plane" && {
    controlPlane: { localAPIEndpoint: localAPIEndpoint(machine) },
  }),
  ...shared(spec, machine),
});

const resetConfiguration = (settings: KubeadmSettings) => ({
  apiVersion,
  kind: "ResetConfiguration",
  criSocket: criSocket(settings),
  force: true,
});

/**
 * What a member is upgraded by. kubeadm's own add-on of kube-proxy would undo this program's patch of
 * it; its check that a Job can run needs a node without taints within a minute.
 */
function upgradeConfiguration(settings: KubeadmSettings, machine: KubeadmMachine) {
  const { ignorePreflightErrors, timeouts } = settings.kubeadm;
  const isAll = ignorePreflightErrors.some(isEveryCheck);
  const both = {
    ignorePreflightErrors: [...(isAll ? [] : ["CreateJob"]), ...ignorePreflightErrors].sort(),
    skipPhases: ["addon/kube-proxy"],
    ...withPatches(settings, machine),
  };
  return {
    apiVersion,
    kind: "UpgradeConfiguration",
    apply: { kubernetesVersion: `v${settings.kubernetesVersion}`, ...both },
    node: both,
    timeouts: sorted(timeouts),
  };
}

/** What all members of a cluster agree on. */
export interface ClusterSpec {
  readonly settings: KubeadmSettings;
  readonly apiName: string;
  readonly cas: RotationState;
  readonly serviceAccountKeys: ServiceAccountKeys;
  /** Whose tokens of service accounts are admitted: the first one gives them. Nothing where that is kubeadm's. */
  readonly tokenIssuers?: readonly [string, ...string[]];
  /** The one of them whose keys this program publishes. */
  readonly publishedIssuer: string;
  /** Where the registries are reached that kubelets log in to. */
  readonly registries: readonly string[];
  /** Nothing where the operator sees to the encryption of Secrets. */
  readonly encryptionKeys?: RotationState;
}

/**
 * A hash over everything that kubeadm configures a member with and that may change on a living one:
 * the version, flags, names in certificates, the kubelet's configuration, patches, which keys Secrets
 * are encrypted with, which CAs there are, and which keys of service accounts.
 */
export const configurationOf = (spec: ClusterSpec, machine: KubeadmMachine): string =>
  digest([
    ...(areFirst(spec.cas) ? [] : [spec.cas.keys]),
    // A kubelet takes its taints once, when its node registers.
    nodeRegistration(spec, { ...machine, taints: [] }),
    machine.role === "control-plane" ? [clusterConfiguration(spec), spec.encryptionKeys?.keys] : [],
    spec.settings.kubernetesVersion,
    kubeletConfiguration(),
    patchesOf(spec.settings, machine),
  ]);

/** Arguments by which a kubelet decides which pods it takes, and which processors and memory they get. */
const ofRoom = [
  "allowed-unsafe-sysctls",
  "cpu-manager-policy",
  "cpu-manager-policy-options",
  "enforce-node-allocatable",
  "eviction-hard",
  "experimental-allocatable-ignore-eviction",
  "kube-reserved",
  "memory-manager-policy",
  "pods-per-core",
  "qos-reserved",
  "reserved-cpus",
  "reserved-memory",
  "system-reserved",
  "topology-manager-policy",
  "topology-manager-policy-options",
  "topology-manager-scope",
];

/**
 * Hash over what decides which pods a kubelet takes. One that starts with another room ends those that do not fit,
 * with a second's grace and whatever their budgets say. Of a patch of its configuration any change counts.
 *
 * @see HandlePodAdditions and rejectPod in pkg/kubelet
 */
export const roomOf = ({ kubeadm }: Pick<KubeadmSettings, "kubeadm">, maxPods: number): string => {
  const flags = Object.entries(sorted(kubeadm.kubeletExtraArgs));
  const patches = Object.entries(sorted(kubeadm.patches));
  return digest([
    maxPods,
    flags.filter(([name]) => ofRoom.includes(name)),
    patches.filter(([name]) => name.startsWith("kubeletconfiguration")),
  ]);
};

/** The part of it that the whole cluster shares, as `kubeadm init phase upload-config` uploads it. */
export const clusterConfigurationOf = (spec: ClusterSpec): string =>
  digest([clusterConfiguration(spec), kubeletConfiguration()]);

const networking = ({ podCidr, serviceCidr }: KubeadmSettings) => ({
  podSubnet: podCidr,
  serviceSubnet: serviceCidr,
});

/** Of a component, where there are any: with what a cluster begins with nothing differs from kubeadm's own. */
const extraEnvs = (...variables: readonly { readonly name: string; readonly value: string }[]) =>
  variables.length > 0 && { extraEnvs: variables };

/** The address of the keys goes into what the API server itself serves of the first one. */
const issuerFlags = (issuers: readonly [string, ...string[]], published: string) => ({
  [issuerFlag]: issuers,
  ...(issuers[0] === published && { "service-account-jwks-uri": keysUrl(published) }),
});

/**
 * An API server that speaks WebSocket to the kubelet itself has it ask cri-dockerd by https, which speaks http: `kubectl exec`
 * and `attach` fail (Mirantis/cri-dockerd#560, #569).
 */
function apiServerOperators({ containerRuntime, kubeadm }: KubeadmSettings): Arguments {
  const { [issuerFlag]: _planned, ...extra } = kubeadm.apiServerExtraArgs;
  if (containerRuntime !== "cri-dockerd") return extra;
  const [gates = ""] = withDefault(
    "ExtendWebSocketsToKubelet",
    "false",
  )(extra["feature-gates"] ?? "");
  return { ...extra, "feature-gates": gates };
}

function clusterConfiguration(spec: ClusterSpec) {
  const { settings, apiName, cas, serviceAccountKeys, tokenIssuers, publishedIssuer } = spec;
  const { kubeadm } = settings;
  const everywhere = areFirst(cas) ? [] : [authoritiesVariable(cas)];
  const withTokens = areFirst(serviceAccountKeys)
    ? everywhere
    : [...everywhere, serviceAccountKeysVariable(serviceAccountKeys)];
  const isEncrypted = isOurs(kubeadm.apiServerExtraArgs);
  const security = apiServerSecurity(settings);
  const operators = apiServerOperators(settings);
  const apiServer = {
    ...quiet,
    ...security.flags,
    "enable-admission-plugins": admissionPlugins(operators).join(","),
    "kubelet-certificate-authority": "/etc/kubernetes/pki/ca.crt",
    ...(isEncrypted && encryptionFlags),
    ...(tokenIssuers && issuerFlags(tokenIssuers, publishedIssuer)),
    ...(settings.controlPlaneCount > 1 && {
      // Clients keep a connection for hours; now and then one goes, and a new server has its share.
      "goaway-chance": "0.001",
      // It fails its probe at once and serves on, until the balancer sends nobody there any more.
      // The kubelet kills a static pod 30 s after it has asked it to end.
      "shutdown-delay-duration": "15s",
    }),
  };
  const controllerManager = {
    "cloud-provider": "external",
    ...quiet,
    ...(cas.keys.length > 1 && { "cluster-signing-cert-file": signingFile }),
  };
  const etcd = { "quota-backend-bytes": `${etcdQuotaBytes}` };
  const { etcd: imageTag } = minorFor(settings.kubernetesVersion);
  return {
    apiVersion,
    kind: "ClusterConfiguration",
    clusterName: settings.clusterName,
    kubernetesVersion: `v${settings.kubernetesVersion}`,
    controlPlaneEndpoint: `${apiName}:${apiPort}`,
    encryptionAlgorithm,
    networking: networking(settings),
    apiServer: {
      certSANs: [apiName, ...settings.apiExtraSans],
      extraArgs: args("apiServerExtraArgs", apiServer, operators),
      ...extraEnvs(...withTokens, ...issuerVariables(settings, apiName)),
      extraVolumes: [...security.volumes, ...(isEncrypted ? [encryptionVolume] : [])],
    },
    controllerManager: {
      extraArgs: args(
        "controllerManagerExtraArgs",
        controllerManager,
        kubeadm.controllerManagerExtraArgs,
      ),
      ...extraEnvs(...withTokens),
    },
    scheduler: {
      extraArgs: args("schedulerExtraArgs", quiet, kubeadm.schedulerExtraArgs),
      ...extraEnvs(...everywhere),
    },
    etcd: {
      local: {
        ...(imageTag !== undefined && { imageTag }),
        extraArgs: args("etcdExtraArgs", etcd, kubeadm.etcdExtraArgs),
        ...extraEnvs(...everywhere),
      },
    },
  };
}

/** The same on every node; kubeadm adds resolvConf, after a look for systemd-resolved on each. */
const kubeletConfiguration = () => ({
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  // Asked of the runtime first; containerd 1.7 does not answer.
  cgroupDriver: "systemd",
  failCgroupV1: false,
  rotateCertificates: true,
  seccompDefault: true,
  // Not above 30 s: Ubuntu's own drop-in for logind wins over the kubelet's, and grants that much.
  shutdownGracePeriod: "30s",
  shutdownGracePeriodCriticalPods: "10s",
  systemReserved: { memory: reservedMemory },
  tlsCertFile: kubeletCertificatePath,
  tlsPrivateKeyFile: kubeletKeyPath,
  tlsCipherSuites: [...cipherSuites],
});

/** kubeadm reads YAML 1.1, in which yes and on without quotes are no text. */
const documents = (...objects: object[]) =>
  objects.map((object) => stringify(object, { lineWidth: 0, version: "1.1" })).join("---\n");

/**
 * Where a worker has no certificates. kubeadm takes a CA without its key, which is what a worker has,
 * for one that is kept elsewhere, and then wants the API server's certificates beside it
 * (UsingExternalCA in cmd/kubeadm/app/phases/certs).
 */
const withoutCertificates = "/etc/zoned/pki";

const workersCertificates = {
  cluster: { certificatesDir: withoutCertificates },
  kubelet: { authentication: { x509: { clientCAFile: "/etc/kubernetes/pki/ca.crt" } } },
};

/** What `kubeadm init phase kubelet-start` writes a kubelet's flags and configuration from. */
const kubeletFile = (spec: ClusterSpec, machine: KubeadmMachine): string =>
  documents(
    {
      apiVersion,
      kind: "InitConfiguration",
      localAPIEndpoint: localAPIEndpoint(machine),
      ...shared(spec, machine),
    },
    {
      apiVersion,
      kind: "ClusterConfiguration",
      kubernetesVersion: `v${spec.settings.kubernetesVersion}`,
      networking: networking(spec.settings),
      ...(machine.role === "worker" && workersCertificates.cluster),
    },
    { ...kubeletConfiguration(), ...(machine.role === "worker" && workersCertificates.kubelet) },
  );

/**
 * The files that tell kubeadm and kube-proxy about one machine, for its bootstrap step.
 *
 * They are read when the machine initializes or joins, and when what is in them has changed.
 */
export function kubeadmFiles(spec: ClusterSpec, machine: KubeadmMachine): PayloadFile[] {
  const { settings } = spec;
  const file = (path: string, content: string) => ({ path, mode: "0600", content });
  const init = documents(
    initConfiguration(spec, machine),
    clusterConfiguration(spec),
    kubeProxyConfiguration(settings),
    kubeletConfiguration(),
  );
  const patches = Object.entries(patchesOf(settings, machine)).sort();
  return [
    ...(machine.role === "control-plane"
      ? [file("/etc/zoned/kubeadm-init.yaml", init), ...apiServerSecurity(settings).files]
      : []),
    file("/etc/zoned/kubeadm-kubelet.yaml", kubeletFile(spec, machine)),
    file("/etc/zoned/kubeadm-join.yaml", documents(joinConfiguration(spec, machine))),
    file("/etc/zoned/kubeadm-reset.yaml", documents(resetConfiguration(settings))),
    file("/etc/zoned/kubeadm-upgrade.yaml", documents(upgradeConfiguration(settings, machine))),
    ...credentialProvider(spec.registries).files,
    ...patches.map(([name, text]) => file(`${patchesDirectory}/${name}`, text)),
  ];
}

/** A worker's access: the CA to trust, where to ask, and the token that is its alone. */
export function discoveryKubeconfig(apiName: string, caCert: string, token: string): string {
  const server = `https://${apiName}:${apiPort}`;
  const ca = Buffer.from(caCert).toString("base64");
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "cluster", cluster: { server, "certificate-authority-data": ca } }],
    users: [{ name: "machine", user: { token } }],
    contexts: [{ name: "machine", context: { cluster: "cluster", user: "machine" } }],
    "current-context": "machine",
  });
}
