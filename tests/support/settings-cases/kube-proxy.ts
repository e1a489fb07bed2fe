import type { Accepted, Cases, Refused, Values } from "../stack";

const kubeProxy = (value: unknown): Values => ({ kubeProxy: value });

const wrongTypes: readonly [unknown, string][] = [
  [
    { detectLocal: { bridgeInterface: 1 } },
    "kubeProxy.detectLocal.bridgeInterface is 1, expected text",
  ],
  [{ bindAddress: 1 }, "kubeProxy.bindAddress is 1, expected an IP address"],
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

const ipvs = "ipvs";

/** What the real kube-proxy ends at, by the mode in which it does. */
export const endings: readonly [mode: string, value: Values, says: string][] = [
  [ipvs, { detectLocalMode: "ClusterCidr" }, "one of ClusterCIDR, NodeCIDR"],
  [ipvs, { detectLocalMode: "BridgeInterface" }, "detectLocal.bridgeInterface beside it"],
  [
    ipvs,
    { detectLocalMode: "InterfaceNamePrefix", detectLocal: { bridgeInterface: "cni0" } },
    "detectLocal.interfaceNamePrefix beside it",
  ],
  [ipvs, { iptables: { masqueradeBit: 32 } }, "a whole number from 0 to 31"],
  ["nftables", { nftables: { masqueradeBit: -1 } }, "a whole number from 0 to 31"],
  [ipvs, { oomScoreAdj: 2000 }, "a whole number from -1000 to 1000"],
  [ipvs, { conntrack: { min: -1 } }, "a whole number from 0"],
  [ipvs, { conntrack: { maxPerCore: 2 ** 31 } }, "a whole number from 0"],
  [ipvs, { bindAddress: "node-1" }, "an IP address"],
  [ipvs, { metricsBindAddress: "10249" }, "an IP address, perhaps with a port"],
  [ipvs, { metricsBindAddress: "localhost:10249" }, "an IP address, perhaps with a port"],
  [ipvs, { healthzBindAddress: "0.0.0.0:0" }, "an IP address, perhaps with a port"],
  [ipvs, { nodePortAddresses: ["10.0.0.1"] }, "ranges such as 10.0.0.0/8"],
  [ipvs, { nodePortAddresses: ["primary", "primary"] }, "each once"],
  [ipvs, { ipvs: { excludeCIDRs: ["10.0.0.0"] } }, "ranges such as 10.0.0.0/8"],
  [ipvs, { ipvs: { minSyncPeriod: "31s" } }, "31s or more, which minSyncPeriod is"],
  ["iptables", { iptables: { syncPeriod: "500ms" } }, "1s or more, which minSyncPeriod is"],
  ["nftables", { nftables: { syncPeriod: "10s", minSyncPeriod: "1m" } }, "1m or more"],
  [ipvs, { logging: { format: "yaml" } }, "one of text, json"],
  [ipvs, { logging: { format: "json", vmodule: [{ filePattern: "a", verbosity: 1 }] } }, "text"],
  [ipvs, { logging: { vmodule: ["proxier=4"] } }, "filePattern and verbosity"],
  [ipvs, { logging: { verbosity: -1 } }, "a whole number from 0"],
  [ipvs, { showHiddenMetricsForVersion: "1.35" }, "1.36, the minor before kube-proxy's"],
  [ipvs, { featureGates: { NFTablesProxy: true } }, "did you mean NFTablesProxyMode?"],
  [ipvs, { featureGates: { NFTablesProxyMode: false } }, "which can only be true"],
  [ipvs, { featureGates: { KubeProxyIPVS: false } }, "KubeProxyIPVS on, without which"],
];

/** What it starts with. */
export const startings: readonly [mode: string, value: Values][] = [
  ["ipvs", everyField()],
  ["nftables", everyField()],
  ["iptables", { metricsBindAddress: "::", healthzBindAddress: "[::1]:10256" }],
  ["iptables", { featureGates: { KubeProxyIPVS: false }, iptables: { syncPeriod: "1s" } }],
  ["nftables", { nodePortAddresses: ["primary", "10.0.0.0/8", "fd00::/64"], detectLocalMode: "" }],
  ["ipvs", { detectLocalMode: "BridgeInterface", detectLocal: { bridgeInterface: "cni0" } }],
  ["ipvs", { logging: { vmodule: [{ filePattern: "proxier*", verbosity: 4 }] } }],
  ["ipvs", { ipvs: { syncPeriod: "500ms" } }],
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
      kubeProxy({ [String(name)]: "x" }),
      `kubeProxy.${name} is not yours to set, expected it left out: ${says}`,
    ]),
    [
      kubeProxy({ ipvs: { scheduler: "wlc" } }),
      "kubeProxy.ipvs.scheduler is not yours to set, expected it left out: set proxyScheduler",
    ],
    [kubeProxy({ nodePortAddress: ["primary"] }), "did you mean nodePortAddresses?"],
    [kubeProxy({ ipvs: { syncperiod: "15m" } }), "kubeProxy.ipvs.syncperiod is not a known name"],
    [kubeProxy({ constructor: 1 }), "kubeProxy.constructor is not a known name"],
    [kubeProxy("x"), 'kubeProxy is "x"'],
    ...wrongTypes.map(([value, says]): Refused => [kubeProxy(value), says]),
    ...[["localhost"], ["primary", "10.0.0.0/8"]].map((nodePortAddresses): Refused => [
      { kubernetesVersion: "1.36.3", ...kubeProxy({ nodePortAddresses }) },
      "primary alone, or ranges alone, before Kubernetes 1.37",
    ]),
    ...endings.map(([proxyMode, value, says]): Refused => [{ proxyMode, kubeProxy: value }, says]),
  ],
  accepted: [
    ...[["primary"], ["10.0.0.0/8", "fd00::/64"]].map((nodePortAddresses): Accepted => [
      `nodePortAddresses ${nodePortAddresses.join(" and ")} of kube-proxy 1.36`,
      { kubernetesVersion: "1.36.3", ...kubeProxy({ nodePortAddresses }) },
    ]),
    ...startings.map(([proxyMode, value]): Accepted => [
      `${Object.keys(value).join(", ")} of kube-proxy in mode ${proxyMode}`,
      { proxyMode, kubeProxy: value },
    ]),
  ],
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
