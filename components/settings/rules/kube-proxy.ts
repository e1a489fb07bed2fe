import { isIP } from "node:net";

import { minorOf } from "../../versions";
import { isDuration } from "../times";
import { entry, found, Problem, toRemove, unknownNames, wants } from "../problem";
import { isRecord } from "../read";
import type { Settings } from "../settings";
import { goDuration, isAddress } from "./argument-types";
import { wrongGates } from "./argument-values";
import { knownArguments } from "./known-arguments";

interface Kind {
  readonly expected: string;
  readonly holds: (value: unknown) => boolean;
}

interface Fields {
  readonly [name: string]: Kind | Fields;
}

const text: Kind = { expected: "text", holds: (value) => typeof value === "string" };
const flag: Kind = { expected: "true or false", holds: (value) => typeof value === "boolean" };
const whole = (least: number, most = 2 ** 31 - 1): Kind => ({
  expected: `a whole number from ${least} to ${most}`,
  holds: (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most,
});
const oneOf = (...known: string[]): Kind => ({
  expected: `one of ${known.join(", ")}`,
  holds: (value) => value === "" || known.includes(value as string),
});
/** Of what is empty kube-proxy takes its default. */
const address: Kind = {
  expected: "an IP address",
  holds: (value) => value === "" || (typeof value === "string" && isAddress(value)),
};
const endpoint: Kind = {
  expected: "an IP address, perhaps with a port, such as 0.0.0.0:10249",
  holds: (value) => {
    if (address.holds(value)) return true;
    const [, inBrackets, bare, port] = /^(?:\[(.+)\]|([^:]+)):(\d+)$/.exec(String(value)) ?? [];
    return isAddress(inBrackets ?? bare ?? "") && whole(1, 65_535).holds(Number(port));
  },
};
const isRange = (value: unknown): boolean => {
  const [, start = "", bits] = /^(.+)\/(\d+)$/.exec(String(value)) ?? [];
  return isAddress(start) && Number(bits) <= (isIP(start) === 4 ? 32 : 128);
};
const ranges: Kind = {
  expected: "a list of ranges such as 10.0.0.0/8",
  holds: (value) => Array.isArray(value) && value.every(isRange),
};
const keywords = ["primary", "localhost", "all"];
const nodePorts: Kind = {
  expected: `a list of ranges such as 10.0.0.0/8, and of ${keywords.join(", ")}, each once`,
  holds: (value) => {
    if (!Array.isArray(value)) return false;
    const words = value.filter((one) => keywords.includes(one as string));
    return (
      new Set(words).size === words.length &&
      value.every((one) => keywords.includes(one as string) || isRange(one))
    );
  },
};
const levels: Kind = {
  expected: "a list of filePattern and verbosity",
  holds: (value) =>
    Array.isArray(value) &&
    value.every(
      (one) =>
        isRecord(one) &&
        /^[^=,]+$/.test(String(one["filePattern"] ?? "")) &&
        whole(0).holds(one["verbosity"]),
    ),
};
const duration: Kind = {
  expected: "a duration such as 30s or 15m",
  holds: (value) => typeof value === "string" && isDuration(value),
};
/** In place of 0 kube-proxy takes its default. */
const period: Kind = {
  expected: "a duration of more than nothing, such as 30s or 15m",
  holds: (value) => duration.holds(value) && /[1-9]/.test(String(value)),
};
const gates: Kind = {
  expected: "true or false by name",
  holds: (value) => isRecord(value) && Object.values(value).every(flag.holds),
};

/** Fields of v1alpha1's KubeProxyConfiguration, but for what this program sets and Windows reads. */
const fields: Fields = {
  bindAddress: address,
  bindAddressHardFail: flag,
  configSyncPeriod: period,
  conntrack: {
    maxPerCore: whole(0),
    min: whole(0),
    tcpBeLiberal: flag,
    tcpCloseWaitTimeout: duration,
    tcpEstablishedTimeout: duration,
    udpStreamTimeout: duration,
    udpTimeout: duration,
  },
  detectLocal: { bridgeInterface: text, interfaceNamePrefix: text },
  detectLocalMode: oneOf("ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"),
  enableProfiling: flag,
  featureGates: gates,
  healthzBindAddress: endpoint,
  iptables: {
    localhostNodePorts: flag,
    masqueradeAll: flag,
    masqueradeBit: whole(0, 31),
    minSyncPeriod: duration,
    syncPeriod: period,
  },
  ipvs: {
    excludeCIDRs: ranges,
    minSyncPeriod: duration,
    strictARP: flag,
    syncPeriod: period,
    tcpFinTimeout: duration,
    tcpTimeout: duration,
    udpTimeout: duration,
  },
  logging: {
    flushFrequency: duration,
    format: oneOf("text", "json"),
    verbosity: whole(0),
    vmodule: levels,
  },
  metricsBindAddress: endpoint,
  nftables: {
    masqueradeAll: flag,
    masqueradeBit: whole(0, 31),
    minSyncPeriod: duration,
    syncPeriod: period,
  },
  nodePortAddresses: nodePorts,
  oomScoreAdj: whole(-1000, 1000),
  showHiddenMetricsForVersion: text,
};

/** The setting or part that sets a field in the operator's place. */
const owned: Readonly<Record<string, string>> = {
  "kubeProxy.apiVersion": "this program writes it",
  "kubeProxy.kind": "this program writes it",
  "kubeProxy.clientConnection": "this program writes it",
  "kubeProxy.hostnameOverride": "each node has its own name, and all have this configuration",
  "kubeProxy.clusterCIDR": "set podCidr",
  "kubeProxy.mode": "set proxyMode",
  "kubeProxy.ipvs.scheduler": "set proxyScheduler",
};

const isKind = (field: Kind | Fields): field is Kind => typeof field["holds"] === "function";

function problemsIn(key: string, given: unknown, known: Fields): Problem[] {
  if (!isRecord(given)) {
    return [{ key, is: found(given), expected: "values by name", fix: toRemove(key) }];
  }
  return Object.entries(given).flatMap(([name, value]): Problem[] => {
    const at = entry(key, name);
    const owner = owned[at];
    if (owner !== undefined) {
      const expected = `it left out: ${owner}`;
      return [{ key: at, is: "is not yours to set", expected, fix: toRemove(at) }];
    }
    if (!Object.hasOwn(known, name)) return unknownNames(key, [name], Object.keys(known));
    const field = known[name]!;
    if (!isKind(field)) return problemsIn(at, value, field);
    if (field.holds(value)) return [];
    return [{ key: at, is: found(value), expected: field.expected, fix: toRemove(at) }];
  });
}

/** What kube-proxy takes in place of nothing and of 0. */
const syncPeriods = { ipvs: ["30s", "0s"], iptables: ["30s", "1s"], nftables: ["30s", "1s"] };

/** A value of a field, or one below it, that has the right type. */
const valueAt = (kubeProxy: unknown, ...path: string[]): unknown =>
  path.reduce((value, name) => (isRecord(value) ? value[name] : undefined), kubeProxy);

function syncProblems(kubeProxy: unknown): Problem[] {
  return Object.entries(syncPeriods).flatMap(([mode, [usual = "", usualLeast = ""]]) => {
    const given = valueAt(kubeProxy, mode, "syncPeriod");
    const least = valueAt(kubeProxy, mode, "minSyncPeriod");
    const atLeast = goDuration(String(least ?? "")) ? String(least) : usualLeast;
    return goDuration(String(given ?? usual))! >= goDuration(atLeast)!
      ? []
      : [
          wants(
            `kubeProxy.${mode}.syncPeriod`,
            given,
            `${atLeast} or more, which minSyncPeriod is`,
            atLeast,
          ),
        ];
  });
}

const nameWanted: Readonly<Record<string, string>> = {
  BridgeInterface: "bridgeInterface",
  InterfaceNamePrefix: "interfaceNamePrefix",
};

function localProblems(kubeProxy: unknown): Problem[] {
  const mode = valueAt(kubeProxy, "detectLocalMode");
  const name = nameWanted[String(mode)];
  if (name === undefined || valueAt(kubeProxy, "detectLocal", name)) return [];
  const key = "kubeProxy.detectLocalMode";
  return [{ key, is: found(mode), expected: `detectLocal.${name} beside it`, fix: toRemove(key) }];
}

function loggingProblems(kubeProxy: unknown): Problem[] {
  const vmodule = valueAt(kubeProxy, "logging", "vmodule") as readonly unknown[] | undefined;
  if (valueAt(kubeProxy, "logging", "format") !== "json" || !vmodule?.length) return [];
  const key = "kubeProxy.logging.vmodule";
  const expected = "it left out, since only the format text has it";
  return [{ key, is: found(vmodule), expected, fix: toRemove(key) }];
}

/** kube-proxy of 1.37 is the first that takes other keywords, and several. */
function portProblems(kubeProxy: unknown, kubernetesVersion: string): Problem[] {
  const given = (valueAt(kubeProxy, "nodePortAddresses") ?? []) as readonly string[];
  const isTaken = given.every(isRange) || given.join() === "primary";
  if (minorOf(kubernetesVersion) !== "1.36" || isTaken) return [];
  const key = "kubeProxy.nodePortAddresses";
  const expected = "primary alone, or ranges alone, before Kubernetes 1.37";
  return [{ key, is: found(given), expected, fix: toRemove(key) }];
}

function metricsProblems(kubeProxy: unknown, kubernetesVersion: string): Problem[] {
  const given = valueAt(kubeProxy, "showHiddenMetricsForVersion");
  const [major, minor] = minorOf(kubernetesVersion).split(".").map(Number);
  const before = `${major}.${minor! - 1}`;
  if (given === undefined || given === "" || given === before) return [];
  const expected = `${before}, the minor before kube-proxy's`;
  return [wants("kubeProxy.showHiddenMetricsForVersion", given, expected, before)];
}

function gateProblems({ kubeProxy, kubernetesVersion, proxyMode }: Settings): Problem[] {
  const given = valueAt(kubeProxy, "featureGates");
  if (!isRecord(given)) return [];
  const gates = Object.entries(given).map((pair) => pair.join("="));
  // kube-proxy has the gates of kubelets, since both have Kubernetes' own list.
  const known = knownArguments("kubeletExtraArgs", kubernetesVersion);
  const isWithoutMode = proxyMode === "ipvs" && given["KubeProxyIPVS"] === false;
  const expected =
    wrongGates(gates.join(","), known, "kube-proxy") ??
    (isWithoutMode ? "KubeProxyIPVS on, without which there is no proxyMode ipvs" : undefined);
  const key = "kubeProxy.featureGates";
  return expected === undefined ? [] : [{ key, is: found(given), expected, fix: toRemove(key) }];
}

/**
 * What is wrong with what an operator adds to kube-proxy's configuration. kube-proxy itself only
 * warns of a field that it does not know, and ends at a value that it cannot do with: no Node of a new
 * cluster has a network then, and a roll-out stops at its first one.
 */
export function kubeProxyProblems(settings: Settings): Problem[] {
  const { kubeProxy, kubernetesVersion } = settings;
  const single = problemsIn("kubeProxy", kubeProxy, fields);
  if (single.length > 0) return single;
  return [
    ...syncProblems(kubeProxy),
    ...localProblems(kubeProxy),
    ...loggingProblems(kubeProxy),
    ...portProblems(kubeProxy, kubernetesVersion),
    ...metricsProblems(kubeProxy, kubernetesVersion),
    ...gateProblems(settings),
  ];
}
