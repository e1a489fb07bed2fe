import * as pulumi from "@pulumi/pulumi";

import { Problem, sentence, unknownNames } from "./settings/problem";
import { readBoolean, readJson, readKubeadm, readNumber, readPools, readTexts } from "./settings/read";
import { problems } from "./settings/rules";
import { readServicePrincipal } from "./settings/service-principal";
import { warnings } from "./settings/warnings";
import { versions } from "./versions";

/** A taint as the kubelet registers it. */
export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
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

/** This stack's settings. Pulumi.yaml explains each under the same name. */
export interface Settings {
  readonly clusterName: string;
  readonly location: string;
  readonly zones: readonly string[];
  readonly networkCidr: string;
  readonly podCidr: string;
  readonly serviceCidr: string;
  readonly egress: "zonal" | "single";
  readonly apiAccessCidrs: readonly string[];
  readonly sshAccessCidrs: readonly string[];
  readonly apiExtraSans: readonly string[];
  readonly adminUsername: string;
  readonly sshPublicKey: string;
  readonly imageVersion: string;
  readonly kubernetesVersion: string;
  readonly controlPlaneCount: number;
  readonly controlPlaneSize: string;
  readonly controlPlanesTakePods: boolean;
  readonly workerPools: readonly WorkerPool[];
  readonly osDiskSku: "Premium_LRS" | "StandardSSD_LRS";
  readonly osDiskSizeGb: number;
  readonly containerRuntime: "docker" | "cri-dockerd" | "containerd";
  readonly proxyMode: "ipvs" | "nftables" | "iptables";
  readonly proxyScheduler: string;
  /** Empty for Kubernetes' own. */
  readonly proxySyncPeriod: string;
  readonly cni: "canal" | "flannel" | "none";
  readonly cloudProvider: boolean;
  readonly diskDriver: boolean;
  readonly storageClasses: boolean;
  /** Given when there is no managed identity to use. */
  readonly servicePrincipal?: {
    readonly clientId: string;
    readonly clientSecret: pulumi.Output<string>;
  };
  readonly kubeadm: KubeadmExtras;
  /** Empty for the official sources. */
  readonly mirror: string;
  readonly resourceManagerEndpoint: string;
  readonly protect: boolean;
  /** The initialization whose cluster may be lost; empty for none. */
  readonly reinitialize: string;
  /** As in compact-time.ts; empty for never. */
  readonly skipHealthCheckUntil: string;
}

/** What a worker pool that names no size gets. */
const workerSize = "Standard_D2s_v5";

/** Reads everything that is set, and reports what cannot be read. */
function readSettings(config: pulumi.Config, report: Problem[]): Settings {
  const names: string[] = ["servicePrincipalClientId", "servicePrincipalClientSecret"];
  const name = (key: string): string => {
    names.push(key);
    return key;
  };
  const text = (key: string): string => config.get(name(key))?.trim() ?? "";
  const choice = <T extends string>(key: string): T => text(key) as T;
  const number = (key: string): number => readNumber(key, text(key), report);
  const yes = (key: string): boolean => readBoolean(key, text(key), report);
  const json = (key: string): unknown => readJson(text(key));
  const texts = (key: string): string[] => readTexts(key, json(key) ?? [], report);

  const zones = texts("zones");
  const settings: Settings = {
    clusterName: text("clusterName") || `zoned-${pulumi.getStack()}`,
    location: text("location"),
    zones,
    networkCidr: text("networkCidr"),
    podCidr: text("podCidr"),
    serviceCidr: text("serviceCidr"),
    egress: choice("egress"),
    apiAccessCidrs: texts("apiAccessCidrs"),
    sshAccessCidrs: texts("sshAccessCidrs"),
    apiExtraSans: texts("apiExtraSans"),
    adminUsername: text("adminUsername"),
    sshPublicKey: text("sshPublicKey"),
    imageVersion: text("imageVersion") || versions.ubuntuImage,
    kubernetesVersion: text("kubernetesVersion") || versions.kubernetes,
    controlPlaneCount: number("controlPlaneCount"),
    controlPlaneSize: text("controlPlaneSize"),
    controlPlanesTakePods: yes("controlPlanesTakePods"),
    workerPools: readPools(json("workerPools"), { size: workerSize, zones }, report),
    osDiskSku: choice("osDiskSku"),
    osDiskSizeGb: number("osDiskSizeGb"),
    containerRuntime: choice("containerRuntime"),
    proxyMode: choice("proxyMode"),
    proxyScheduler: text("proxyScheduler"),
    proxySyncPeriod: text("proxySyncPeriod"),
    cni: choice("cni"),
    cloudProvider: yes("cloudProvider"),
    diskDriver: yes("diskDriver"),
    storageClasses: yes("storageClasses"),
    servicePrincipal: readServicePrincipal(config, report),
    kubeadm: readKubeadm(json("kubeadm"), report),
    mirror: text("mirror"),
    resourceManagerEndpoint: text("resourceManagerEndpoint").replace(/\/+$/, ""),
    protect: yes("protect"),
    reinitialize: text("reinitialize"),
    skipHealthCheckUntil: text("skipHealthCheckUntil"),
  };
  const own = `${config.name}:`;
  const given = Object.keys(pulumi.runtime.allConfig())
    .filter((key) => key.startsWith(own))
    .map((key) => key.slice(own.length));
  report.push(...unknownNames("", given, names));
  return settings;
}

/**
 * This stack's settings. Pulumi.yaml has their defaults and explains them; what is wrong is found
 * here, types included, and told all at once.
 */
export function loadSettings(config = new pulumi.Config()): Settings {
  const unreadable: Problem[] = [];
  const settings = readSettings(config, unreadable);
  const found = [
    ...unreadable,
    ...problems(settings).filter(({ key }) => !unreadable.some((other) => holds(other.key, key))),
  ];
  if (found.length > 0) {
    const list = found.map((problem) => `\n  - ${sentence(problem)}`).join("");
    throw new pulumi.RunError(`stack ${pulumi.getStack()} cannot be deployed:${list}`);
  }
  for (const warning of warnings(settings)) void pulumi.log.warn(warning);
  return settings;
}

/** Whether a path is another one, or leads into it. */
const holds = (outer: string, key: string): boolean =>
  key === outer || key.startsWith(`${outer}.`) || key.startsWith(`${outer}[`);
