import * as pulumi from "@pulumi/pulumi";

import { versions } from "../versions";
import { found, Problem, sentence, toSet, toSetSecret, unknownNames } from "./problem";
import {
  readBoolean,
  readEntra,
  readEtcdBackups,
  readHttpProxy,
  readJson,
  readKubeadm,
  readKubeProxy,
  readNumber,
  readPools,
  readReboots,
  readRegistryCredentials,
  readTags,
  readTexts,
  readWorkloadIdentities,
} from "./read";
import { problems } from "./rules";
import { readablePasswordProblems } from "./rules/http-proxy";
import { longestClusterName } from "./rules/names";
import { readableCredentialProblems } from "./rules/registries";
import type { Settings } from "./settings";
import { shellProxyProblems } from "./shell-proxy";
import { warnings } from "./warnings";

/** What a worker pool that names no size gets. */
const workerSize = "Standard_D2s_v5";

/** Where machines would be in a network of the cluster's own, which decides nothing in subnets of others. */
const unusedNetwork = "172.16.0.0/16";

/** A stack of images, which has `-image` behind the cluster's, may have a longer name than a cluster. */
function defaultName(): string {
  const name = `zoned-${pulumi.getStack()}`;
  const isOfImages = process.env["ZONED_PROGRAM"] === "image";
  return isOfImages && name.length > longestClusterName ? name.replace(/-image$/, "") : name;
}

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
  const nodeSubnets = texts("nodeSubnets");
  const networkCidr = text("networkCidr");
  const osDiskSku = choice<Settings["osDiskSku"]>("osDiskSku");
  const osDiskSizeGb = number("osDiskSizeGb");
  const settings: Settings = {
    clusterName: text("clusterName") || defaultName(),
    resourceGroup: text("resourceGroup"),
    location: text("location"),
    zones,
    networkCidr: nodeSubnets.length > 0 ? unusedNetwork : networkCidr,
    podCidr: text("podCidr"),
    serviceCidr: text("serviceCidr"),
    nodeSubnets,
    egress: choice("egress"),
    apiAccess: choice("apiAccess"),
    apiName: text("apiName"),
    apiAccessCidrs: texts("apiAccessCidrs"),
    apiProxy: text("apiProxy"),
    sshAccessCidrs: texts("sshAccessCidrs"),
    apiExtraSans: texts("apiExtraSans"),
    adminUsername: text("adminUsername"),
    sshPublicKey: text("sshPublicKey"),
    imageVersion: text("imageVersion"),
    image: text("image"),
    kubernetesVersion: text("kubernetesVersion") || versions.kubernetes,
    controlPlaneCount: number("controlPlaneCount"),
    controlPlaneSize: text("controlPlaneSize"),
    schedulableControlPlanes: yes("schedulableControlPlanes"),
    workerPools: readPools(
      json("workerPools"),
      { size: workerSize, zones, osDiskSku, osDiskSizeGb },
      report,
    ),
    osDiskSku,
    osDiskSizeGb,
    encryptionAtHost: yes("encryptionAtHost"),
    diskEncryptionSetId: text("diskEncryptionSetId"),
    containerRuntime: choice("containerRuntime"),
    proxyMode: choice("proxyMode"),
    proxyScheduler: text("proxyScheduler"),
    kubeProxy: readKubeProxy(json("kubeProxy"), report),
    cni: choice("cni"),
    cloudProvider: yes("cloudProvider"),
    diskDriver: yes("diskDriver"),
    storageClasses: yes("storageClasses"),
    metricsServer: yes("metricsServer"),
    identityId: text("identityId"),
    machineIdentity: yes("machineIdentity"),
    servicePrincipal: readServicePrincipal(config, report),
    registries: texts("registries"),
    kubeletIdentityId: text("kubeletIdentityId"),
    registryCredentials: readRegistryCredentials(json("registryCredentials"), report),
    workloadIdentities: readWorkloadIdentities(json("workloadIdentities"), report),
    entra: readEntra(json("entra"), report),
    kubeadm: readKubeadm(json("kubeadm"), report),
    autoRepair: yes("autoRepair"),
    reboots: readReboots(json("reboots"), report),
    etcdBackups: readEtcdBackups(json("etcdBackups"), report),
    encryptionKeyGeneration: number("encryptionKeyGeneration"),
    caGeneration: number("caGeneration"),
    serviceAccountKeyGeneration: number("serviceAccountKeyGeneration"),
    mirror: text("mirror"),
    httpProxy: readHttpProxy(json("httpProxy"), report),
    tags: readTags(json("tags"), report),
    resourceManagerEndpoint: text("resourceManagerEndpoint").replace(/\/+$/, ""),
    protect: yes("protect"),
    drainMinutes: number("drainMinutes"),
    reinitialize: text("reinitialize"),
    restoreFrom: text("restoreFrom"),
    skipHealthCheckUntil: text("skipHealthCheckUntil"),
  };
  if (settings.httpProxy !== undefined && !isEncrypted(config, "httpProxy")) {
    report.push(...readablePasswordProblems(settings.httpProxy));
  }
  if (!isEncrypted(config, "registryCredentials")) {
    report.push(...readableCredentialProblems(settings));
  }
  const own = `${config.name}:`;
  const given = Object.keys(pulumi.runtime.allConfig())
    .filter((key) => key.startsWith(own))
    .map((key) => key.slice(own.length));
  report.push(...unknownNames("", given, names));
  return settings;
}

/**
 * This stack's settings. Pulumi.yaml has their defaults and explains them; what is wrong is found
 * here, types included, and reported all at once.
 */
export function loadSettings(config = new pulumi.Config()): Settings {
  const unreadable: Problem[] = [];
  const settings = readSettings(config, unreadable);
  // Nor is anything said of what is in something else that cannot be read.
  const isInOther = ({ key }: Problem) =>
    unreadable.some((other) => other.key !== key && holds(other.key, key));
  const found = [
    ...shellProxyProblems(),
    ...unreadable.filter((one) => !isInOther(one)),
    ...problems(settings).filter(({ key }) => !unreadable.some((other) => holds(other.key, key))),
  ];
  if (found.length > 0) {
    const list = inOrder(found)
      .map((problem) => `\n  - ${sentence(problem)}`)
      .join("");
    throw new pulumi.RunError(`stack ${pulumi.getStack()} cannot be deployed:${list}`);
  }
  for (const warning of warnings(settings)) void pulumi.log.warn(warning);
  return settings;
}

/**
 * In an order in which all commands can be run one after another: entries behind one that is taken out of a list move up,
 * so that these commands come last, from the end of a list, and each once.
 */
function inOrder(problems: readonly Problem[]): Problem[] {
  const entryOf = ({ fix }: Problem) =>
    /^pulumi config rm --path '(.*\[\d+\])'$/.exec(fix)?.[1] ?? "";
  const removals = problems
    .filter((one) => entryOf(one) !== "")
    .sort((a, b) => entryOf(b).localeCompare(entryOf(a), "en", { numeric: true }));
  return [
    ...problems.filter((one) => entryOf(one) === ""),
    ...removals.map((one, at) =>
      removals[at - 1]?.fix === one.fix ? { ...one, fix: "as above" } : one,
    ),
  ];
}

/** Whether a path is another one, or leads into it. */
const holds = (outer: string, key: string): boolean =>
  key === outer || key.startsWith(`${outer}.`) || key.startsWith(`${outer}[`);

// The SDK's types leave it out. Pulumi.yaml's `secret: true` is no help: it would ask every stack
// for an encrypted value.
const { isConfigSecret } = pulumi.runtime as unknown as { isConfigSecret(key: string): boolean };

/** Whether a setting is encrypted in the stack's file; of a map or list, any entry of it. */
const isEncrypted = (config: pulumi.Config, key: string): boolean =>
  isConfigSecret(`${config.name}:${key}`);

const idKey = "servicePrincipalClientId";
const secretKey = "servicePrincipalClientSecret";
const guid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * The service principal of a cluster without a managed identity. The secret itself appears in no
 * message.
 */
function readServicePrincipal(
  config: pulumi.Config,
  report: Problem[],
): Settings["servicePrincipal"] {
  const clientId = config.get(idKey) ?? "";
  const clientSecret = config.getSecret(secretKey);
  const hasSecret = (config.get(secretKey) ?? "") !== "";
  if (clientId === "" && !hasSecret) return undefined;
  if (!guid.test(clientId)) {
    report.push({
      key: idKey,
      is: clientId === "" ? found(clientId) : "is not a GUID",
      expected: "the application's client id (a GUID), since a secret and an id only work together",
      fix: toSet(idKey, "00000000-0000-0000-0000-000000000000"),
    });
  }
  if (!hasSecret) {
    report.push({
      key: secretKey,
      is: "is not set",
      expected: "the application's secret, since an id and a secret only work together",
      fix: toSetSecret(secretKey),
    });
  } else if (!isEncrypted(config, secretKey)) {
    report.push({
      key: secretKey,
      is: "is readable in the stack's file",
      expected:
        "an encrypted value, and another secret, since this one may be in the file's history",
      fix: toSetSecret(secretKey),
    });
  }
  return clientSecret && { clientId, clientSecret };
}
