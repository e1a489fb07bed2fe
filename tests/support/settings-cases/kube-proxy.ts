import type { Values } from "../stack";
import type { Cases, Refused } from "./case";

const kubeProxy = (value: unknown): Values => ({ kubeProxy: value });

const wrongTypes: readonly [unknown, string][] = [
  [{ bindAddress: 1 }, "kubeProxy.bindAddress is 1, expected text"],
  [{ enableProfiling: "yes" }, 'kubeProxy.enableProfiling is "yes", expected true or false'],
  [{ oomScoreAdj: 1.5 }, "kubeProxy.oomScoreAdj is 1.5, expected a whole number"],
  [{ nodePortAddresses: "primary" }, 'nodePortAddresses is "primary", expected a list'],
  [{ conntrack: { udpTimeout: "1 hour" } }, "expected a duration"],
  [{ conntrack: "off" }, 'kubeProxy.conntrack is "off", expected values by name'],
  [{ featureGates: { NFAcct: "on" } }, "expected true or false by name"],
  ...["configSyncPeriod", "ipvs", "iptables", "nftables"].map((name): [unknown, string] => [
    { [name]: name === "configSyncPeriod" ? "0s" : { syncPeriod: "0s" } },
    "a duration of more than nothing",
  ]),
];

export const kubeProxyCases: Cases = {
  refused: [
    ...[
      ["apiVersion", "this program writes it"],
      ["kind", "this program writes it"],
      ["clientConnection", "this program writes it"],
      ["hostnameOverride", "each node has its own name"],
      ["clusterCIDR", "set podCidr"],
      ["mode", "set proxyMode"],
    ].map(([name, says]): Refused => [
      `kube-proxy's ${name}, which the program sets`,
      kubeProxy({ [String(name)]: "x" }),
      `kubeProxy.${name} is not yours to set, expected it left out: ${says}`,
    ]),
    [
      "kube-proxy's scheduler, which has a setting of its own",
      kubeProxy({ ipvs: { scheduler: "wlc" } }),
      "kubeProxy.ipvs.scheduler is not yours to set, expected it left out: set proxyScheduler",
    ],
    [
      "an unknown field of kube-proxy",
      kubeProxy({ nodePortAddress: ["primary"] }),
      "did you mean nodePortAddresses?",
    ],
    [
      "an unknown field below one of kube-proxy's",
      kubeProxy({ ipvs: { syncperiod: "15m" } }),
      "kubeProxy.ipvs.syncperiod is not a known name",
    ],
    ["text for kube-proxy's fields", kubeProxy("x"), 'kubeProxy is "x"'],
    ...wrongTypes.map(([value, says]): Refused => [
      `${JSON.stringify(value)} for kube-proxy`,
      kubeProxy(value),
      says,
    ]),
  ],
  accepted: [["every field of kube-proxy", kubeProxy(everyField())]],
};

/** A value for each field that an operator may set. */
export function everyField() {
  return {
    bindAddress: "0.0.0.0",
    bindAddressHardFail: false,
    configSyncPeriod: "15m",
    conntrack: {
      maxPerCore: 0,
      min: 1,
      tcpBeLiberal: true,
      tcpCloseWaitTimeout: "0s",
      tcpEstablishedTimeout: "1h",
      udpStreamTimeout: "0s",
      udpTimeout: "0s",
    },
    detectLocal: { bridgeInterface: "cni0", interfaceNamePrefix: "cali" },
    detectLocalMode: "ClusterCIDR",
    enableProfiling: true,
    featureGates: { NFTablesProxyMode: true },
    healthzBindAddress: "0.0.0.0:10256",
    iptables: {
      localhostNodePorts: false,
      masqueradeAll: true,
      masqueradeBit: 14,
      minSyncPeriod: "0s",
      syncPeriod: "30s",
    },
    ipvs: {
      excludeCIDRs: ["192.0.2.0/24"],
      minSyncPeriod: "0s",
      strictARP: true,
      syncPeriod: "1h30m",
      tcpFinTimeout: "0s",
      tcpTimeout: "0s",
      udpTimeout: "0s",
    },
    logging: { flushFrequency: "5s", format: "json", verbosity: 2, vmodule: [] },
    metricsBindAddress: "0.0.0.0:10249",
    nftables: { masqueradeAll: true, masqueradeBit: 14, minSyncPeriod: "1s", syncPeriod: "30s" },
    nodePortAddresses: ["primary"],
    oomScoreAdj: -998,
    showHiddenMetricsForVersion: "1.36",
  };
}
