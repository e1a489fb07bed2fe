import { readFileSync } from "node:fs";
import { join } from "node:path";

import { minorFor, minors } from "../../versions";
import { isRecord } from "../read";
import type { Component } from "../settings";

/** What a program takes on its command line. */
export interface KnownArguments {
  /** The type of each flag, as its parser in Go is called. */
  readonly flags: Readonly<Record<string, string>>;
  /** Stage, default, and `locked` where that is all that a gate can be, such as `GA true locked`. */
  readonly featureGates: Readonly<Record<string, string>>;
  /** Which gates have to be on for a gate to be. */
  readonly dependencies: Readonly<Record<string, readonly string[]>>;
  /** What the entries of a list can be, by the name of its flag. */
  readonly values: Readonly<Record<string, readonly string[]>>;
}

export const programs: Readonly<Record<Component, string>> = {
  apiServerExtraArgs: "kube-apiserver",
  controllerManagerExtraArgs: "kube-controller-manager",
  schedulerExtraArgs: "kube-scheduler",
  etcdExtraArgs: "etcd",
  kubeletExtraArgs: "kubelet",
};

type Own = Omit<KnownArguments, "featureGates" | "dependencies"> & Partial<KnownArguments>;

/** A release as `npm run arguments` writes it: the gates that its programs share stand once. */
export interface KnownRelease extends Pick<KnownArguments, "featureGates" | "dependencies"> {
  /** Of each program what is its own, and which of the shared gates it does not have. */
  readonly programs: Readonly<Record<string, Own & { readonly without?: readonly string[] }>>;
}

/** What one program of a release takes. */
export function argumentsOf(
  { featureGates, dependencies, programs }: KnownRelease,
  program: string,
): KnownArguments {
  const { without = [], ...own } = programs[program]!;
  const gates = Object.entries(featureGates).filter(([name]) => !without.includes(name));
  return { featureGates: Object.fromEntries(gates), dependencies, ...own };
}

/** A value after a JSON merge patch (RFC 7396): what is null in it is gone. */
export function patched(value: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const result = isRecord(value) ? { ...value } : {};
  for (const [name, change] of Object.entries(patch)) {
    if (change === null) delete result[name];
    else result[name] = patched(result[name], change);
  }
  return result;
}

/** The newest minor stands whole, the one before it as a patch on that. */
function read(minor: string): KnownRelease {
  const parsed = (name: string): unknown =>
    JSON.parse(readFileSync(join(__dirname, "arguments", name), "utf8"));
  const newest = parsed(`${minors[0].minor}.json`);
  const isNewest = minor === minors[0].minor;
  return (isNewest ? newest : patched(newest, parsed(`${minor}.patch.json`))) as KnownRelease;
}

const byMinor = new Map<string, KnownRelease>();

/** What a component takes at a Kubernetes version; at the newest where there is no such version. */
export function knownArguments(component: Component, kubernetesVersion: string): KnownArguments {
  const { minor } = minorFor(kubernetesVersion);
  if (!byMinor.has(minor)) byMinor.set(minor, read(minor));
  return argumentsOf(byMinor.get(minor)!, programs[component]);
}

const kubeadm = "kubeadm sets it, from this program's configuration";

/** Arguments that the cluster's parts agree on: what sets each of them in the operator's place. */
export const ownedArguments: Readonly<Record<Component, Readonly<Record<string, string>>>> = {
  apiServerExtraArgs: {
    ...by(
      kubeadm,
      "advertise-address allow-privileged bind-address client-ca-file enable-bootstrap-token-auth etcd-cafile " +
        "etcd-certfile etcd-keyfile etcd-servers kubelet-client-certificate kubelet-client-key proxy-client-cert-file " +
        "proxy-client-key-file requestheader-client-ca-file secure-port service-account-key-file " +
        "service-account-signing-key-file tls-cert-file tls-private-key-file",
    ),
    "kubelet-certificate-authority": "kubelets have certificates of the cluster's CA",
    "service-cluster-ip-range": "set serviceCidr",
  },
  controllerManagerExtraArgs: {
    ...by(
      kubeadm,
      "allocate-node-cidrs authentication-kubeconfig authorization-kubeconfig client-ca-file cloud-provider " +
        "cluster-signing-cert-file cluster-signing-key-file kubeconfig leader-elect node-cidr-mask-size " +
        "node-cidr-mask-size-ipv4 node-cidr-mask-size-ipv6 requestheader-client-ca-file root-ca-file " +
        "service-account-private-key-file use-service-account-credentials",
    ),
    "cluster-cidr": "set podCidr",
    "cluster-name": "set clusterName",
    "service-cluster-ip-range": "set serviceCidr",
  },
  schedulerExtraArgs: by(
    kubeadm,
    "authentication-kubeconfig authorization-kubeconfig kubeconfig leader-elect",
  ),
  etcdExtraArgs: by(
    kubeadm,
    "advertise-client-urls cert-file client-cert-auth data-dir force-new-cluster initial-advertise-peer-urls " +
      "initial-cluster initial-cluster-state initial-cluster-token key-file listen-client-urls listen-peer-urls name " +
      "peer-cert-file peer-client-cert-auth peer-key-file peer-trusted-ca-file trusted-ca-file",
  ),
  kubeletExtraArgs: {
    ...by(
      kubeadm,
      "anonymous-auth authentication-token-webhook authorization-mode bootstrap-kubeconfig cert-dir cgroup-driver " +
        "client-ca-file cloud-provider cluster-domain config container-runtime-endpoint healthz-bind-address " +
        "healthz-port hostname-override kubeconfig node-ip pod-manifest-path rotate-certificates tls-cert-file " +
        "tls-private-key-file",
    ),
    "provider-id": "Azure's cloud provider gives each node its own",
    "register-with-taints": "set taints of a pool in workerPools, or schedulableControlPlanes",
  },
};

function by(owner: string, names: string): Record<string, string> {
  return Object.fromEntries(names.split(" ").map((name) => [name, owner]));
}

const experimental = "experimental-";

/** Feature gates that have taken the place of etcd's experimental flags; others kept their name. */
const gates: Readonly<Record<string, string>> = {
  "compact-hash-check-enabled": "CompactHashCheck",
  "enable-lease-checkpoint": "LeaseCheckpoint",
  "enable-lease-checkpoint-persist": "LeaseCheckpointPersist",
  "initial-corrupt-check": "InitialCorruptCheck",
  "stop-grpc-service-on-defrag": "StopGRPCServiceOnDefrag",
  "txn-mode-write-with-shared-buffer": "TxnModeWriteWithSharedBuffer",
};

/** Flags of etcd's second API, which has gone with its store. */
const secondApi = ["discovery", "discovery-proxy", "enable-v2", "experimental-enable-v2v3"];

/** Flags of cAdvisor's that kubelets took until 1.36, since both were once linked into one program. */
const cAdvisors = (
  "application-metrics-count-limit boot-id-file container-hints containerd containerd-namespace enable-load-reader " +
  "event-storage-age-limit event-storage-event-limit global-housekeeping-interval log-cadvisor-usage machine-id-file " +
  "storage-driver-buffer-duration storage-driver-db storage-driver-host storage-driver-password storage-driver-secure " +
  "storage-driver-table storage-driver-user"
).split(" ");

/** What has taken the place of an argument that earlier releases of a program had, if that is known. */
export function replacementOf(
  component: Component,
  name: string,
  { flags }: Pick<KnownArguments, "flags">,
): string | undefined {
  if (component === "kubeletExtraArgs" && cAdvisors.includes(name))
    return "nothing has taken its place, since it was a flag of cAdvisor's, and a kubelet does not start with it";
  if (component === "controllerManagerExtraArgs" && name === "concurrent-service-syncs")
    return "nothing has taken its place, since it has done nothing from 1.31 on";
  if (component !== "etcdExtraArgs") return undefined;
  if (secondApi.includes(name)) return "nothing has taken its place, since etcd has no v2 store";
  if (!name.startsWith(experimental)) return undefined;
  const kept = name.slice(experimental.length);
  const gate = gates[kept];
  if (gate !== undefined) return `its place has taken the feature gate ${gate}: set feature-gates`;
  return Object.hasOwn(flags, kept) ? `its name is ${kept} now` : undefined;
}
