import { isDuration } from "../times";
import { entry, found, Problem, toRemove, unknownNames } from "../problem";
import { isRecord } from "../read";
import type { Settings } from "../settings";

interface Kind {
  readonly expected: string;
  readonly holds: (value: unknown) => boolean;
}

interface Fields {
  readonly [name: string]: Kind | Fields;
}

const text: Kind = { expected: "text", holds: (value) => typeof value === "string" };
const flag: Kind = { expected: "true or false", holds: (value) => typeof value === "boolean" };
const whole: Kind = { expected: "a whole number", holds: Number.isInteger };
const list: Kind = { expected: "a list", holds: Array.isArray };
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
  bindAddress: text,
  bindAddressHardFail: flag,
  configSyncPeriod: period,
  conntrack: {
    maxPerCore: whole,
    min: whole,
    tcpBeLiberal: flag,
    tcpCloseWaitTimeout: duration,
    tcpEstablishedTimeout: duration,
    udpStreamTimeout: duration,
    udpTimeout: duration,
  },
  detectLocal: { bridgeInterface: text, interfaceNamePrefix: text },
  detectLocalMode: text,
  enableProfiling: flag,
  featureGates: gates,
  healthzBindAddress: text,
  iptables: {
    localhostNodePorts: flag,
    masqueradeAll: flag,
    masqueradeBit: whole,
    minSyncPeriod: duration,
    syncPeriod: period,
  },
  ipvs: {
    excludeCIDRs: list,
    minSyncPeriod: duration,
    strictARP: flag,
    syncPeriod: period,
    tcpFinTimeout: duration,
    tcpTimeout: duration,
    udpTimeout: duration,
  },
  logging: { flushFrequency: duration, format: text, verbosity: whole, vmodule: list },
  metricsBindAddress: text,
  nftables: {
    masqueradeAll: flag,
    masqueradeBit: whole,
    minSyncPeriod: duration,
    syncPeriod: period,
  },
  nodePortAddresses: list,
  oomScoreAdj: whole,
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
    const field = known[name];
    if (field === undefined) return unknownNames(key, [name], Object.keys(known));
    if (!isKind(field)) return problemsIn(at, value, field);
    if (field.holds(value)) return [];
    return [{ key: at, is: found(value), expected: field.expected, fix: toRemove(at) }];
  });
}

/**
 * What is wrong with what an operator adds to kube-proxy's configuration. kube-proxy itself only
 * warns of a field that it does not know.
 */
export const kubeProxyProblems = ({ kubeProxy }: Settings): Problem[] =>
  problemsIn("kubeProxy", kubeProxy, fields);
