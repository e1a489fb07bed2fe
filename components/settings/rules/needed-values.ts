import type { Component } from "../settings";
import { entriesOf, goBoolean, goNumber, pairOf, portRange } from "./argument-types";

/** Why the program cannot do with a value: what was expected, or undefined. */
type Need = (value: string) => string | undefined;

const leftOut =
  (why: string): Need =>
  () =>
    `it left out, since ${why}`;

/** A value that is refused; others are the operator's to choose. */
const not =
  (refused: boolean, why: string): Need =>
  (value) =>
    goBoolean(value) === refused ? `${!refused}, since ${why}` : undefined;

/** The one value that there may be. */
const only =
  (kept: string, why: string): Need =>
  (value) =>
    value === kept ? undefined : `${kept}, since ${why}`;

/** Entries that have to stay out of a list. */
const without =
  (refused: Readonly<Record<string, string>>): Need =>
  (value) => {
    const present = entriesOf(value).filter((entry) => entry in refused);
    return present.length === 0
      ? undefined
      : `it without ${present.map((entry) => `${entry}, ${refused[entry]}`).join("; ")}`;
  };

const closedModes = without({
  AlwaysAllow: "by which everybody who is admitted may do everything, whatever RBAC says",
});

const probe = "since the balancer's probe is anonymous and speaks TLS 1.2, and would find no API";

const withHttp2 = (suites: readonly string[], why: string): Need => {
  return (value) =>
    suites.some((suite) => entriesOf(value).includes(suite))
      ? undefined
      : `${suites.join(" or ")} among them, ${why}`;
};

const anyHttp2 = withHttp2(
  ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
  "without which no server of HTTP/2 starts",
);

/** APIs that Kubernetes' own parts, the add-ons and this program use. */
function withoutApis(value: string): string | undefined {
  const pairs = entriesOf(value).map((pair) => pair.split("=").map((part) => part.trim()));
  const isOn = (api: string): boolean =>
    pairs.some(([name, is]) => name === api && goBoolean(is ?? "true") === true);
  const lost = pairs
    .filter(([, is = ""]) => goBoolean(is) === false)
    .map(([api = ""]) => api)
    .filter(
      (api) =>
        (api === "api/all" && !isOn("api/ga")) || /^(api\/ga|v1|[^/]+\/v\d+(\/.*)?)$/.test(api),
    );
  return lost.length === 0
    ? undefined
    : `it without ${lost.join(", ")}, since the cluster's own parts and add-ons use the stable APIs`;
}

/** Where every machine, or every control plane, is reached: kube-proxy would send such a port's packets to a Service. */
const ownPorts = [22, 2379, 2380, 2381, 6443, 10_250, 10_256, 10_257, 10_259];

function withoutOwnPorts(value: string): string | undefined {
  const [first, last] = portRange(value) ?? [0, 0];
  const lost = ownPorts.filter((port) => first <= port && port <= last);
  return lost.length === 0
    ? undefined
    : `a range without ${lost.join(", ")}, where the machines themselves are reached: a Service of such a port would take its place`;
}

/** Nodes get these from the cloud provider, or from the kubelet by what it finds. */
const ownLabels = [
  "beta.kubernetes.io/arch",
  "beta.kubernetes.io/instance-type",
  "beta.kubernetes.io/os",
  "failure-domain.beta.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "kubernetes.io/arch",
  "kubernetes.io/hostname",
  "kubernetes.io/os",
  "node.kubernetes.io/instance-type",
  "topology.kubernetes.io/region",
  "topology.kubernetes.io/zone",
];

function withoutOwnLabels(value: string): string | undefined {
  const lost = entriesOf(value)
    .map((pair) => pair.split("=")[0]!.trim())
    .filter((name) => ownLabels.includes(name));
  return lost.length === 0
    ? undefined
    : `it without ${lost.join(", ")}, since each machine's kubelet and Azure's cloud provider set it`;
}

/** Without them no node becomes Ready, no pod runs, or no certificate is renewed. */
const neededControllers: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ["certificatesigningrequest-approving-controller", "csrapproving"],
    ["certificatesigningrequest-signing-controller", "csrsigning"],
    ["daemonset-controller", "daemonset"],
    ["deployment-controller", "deployment"],
    ["disruption-controller", "disruption"],
    ["endpointslice-controller", "endpointslice"],
    ["garbage-collector-controller", "garbagecollector"],
    ["namespace-controller", "namespace"],
    ["node-ipam-controller", "nodeipam"],
    ["node-lifecycle-controller", "nodelifecycle"],
    ["persistentvolume-attach-detach-controller", "attachdetach"],
    ["persistentvolume-binder-controller", "persistentvolume-binder"],
    ["replicaset-controller", "replicaset"],
    ["root-ca-certificate-publisher-controller", "root-ca-cert-publisher"],
    ["serviceaccount-controller", "serviceaccount"],
  ]
    .flat()
    .map((name) => [`-${name}`, "which this cluster cannot do without"]),
);

const stops = leftOut("the program ends at once with it");

const probedPort = leftOut("kubeadm has the kubelet probe the default port");

const signingFiles = [
  "kube-apiserver-client",
  "kubelet-client",
  "kubelet-serving",
  "legacy-unknown",
].flatMap((signer) => ["cert", "key"].map((file) => `cluster-signing-${signer}-${file}-file`));

const signing = leftOut(
  "kubeadm sets cluster-signing-cert-file, and a controller manager does not start with both",
);

const discovery = leftOut("kubeadm sets initial-cluster, and etcd does not start with both");

const discoveryNames =
  "discovery discovery-cacert discovery-cert discovery-endpoints discovery-fallback discovery-key " +
  "discovery-password discovery-proxy discovery-srv discovery-srv-name discovery-token discovery-user";

const collected = not(false, "what a removed Deployment or DaemonSet ran would go on");

const leader = "an update begins only where this Lease says that a controller manager runs";

const everyComponent = { help: stops, version: stops };

const needs: Readonly<Record<Component, Readonly<Record<string, Need>>>> = {
  apiServerExtraArgs: {
    ...everyComponent,
    "admission-control": leftOut(
      "kubeadm sets enable-admission-plugins, and an API server does not start with both: set that",
    ),
    "anonymous-auth": (value) =>
      goBoolean(value) === false
        ? `another value, ${probe}`
        : "it left out, since this program's authentication-config answers requests without a credential " +
          "for /livez, /readyz and /healthz alone",
    "authentication-config": leftOut(
      "this program's own limits requests without a credential to the three paths of the balancer's " +
        "probe: set entra for another way to log in",
    ),
    "authorization-config": leftOut(
      "it takes the place of authorization-mode, whose Node and RBAC this program needs: set " +
        "authorization-mode and authorization-webhook-config-file",
    ),
    "authorization-mode": (value) => {
      const missing = ["Node", "RBAC"].filter((mode) => !entriesOf(value).includes(mode));
      return missing.length === 0
        ? closedModes(value)
        : `${missing.join(" and ")} among the modes, since kubelets, and this program's drains with their ` +
            "certificates, are allowed what they do by Node, and everybody else by RBAC; such as Node,RBAC,Webhook";
    },
    "disable-admission-plugins": without({
      NodeRestriction: "which keeps a node from changing others",
      Priority: "by which the cluster's own pods are the last to be evicted",
      ServiceAccount: "by which pods get the tokens that add-ons need",
      ValidatingAdmissionPolicy:
        "which keeps tokens that are on every machine from changing other Nodes, and kured's token from running anything on all of them",
    }),
    "enable-admission-plugins": without({
      AlwaysDeny: "which refuses every change, also those of the cluster's own parts",
    }),
    "enable-garbage-collector": collected,
    "endpoint-reconciler-type": (value) =>
      value === "none"
        ? "lease, since pods find the API by the endpoints that it keeps"
        : undefined,
    "etcd-prefix": leftOut("all that a living cluster has stored would be out of sight"),
    "runtime-config": withoutApis,
    "service-node-port-range": withoutOwnPorts,
    "service-account-signing-endpoint": leftOut(
      "kubeadm sets service-account-signing-key-file, and an API server does not start with both",
    ),
    "tls-cipher-suites": withHttp2(
      ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
      "without which no server of HTTP/2 starts, and the balancer's probe cannot speak to the API, whose key is RSA",
    ),
    "tls-min-version": (value) =>
      value === "VersionTLS13" ? `another value, ${probe}` : undefined,
  },
  controllerManagerExtraArgs: {
    ...everyComponent,
    ...Object.fromEntries(signingFiles.map((name) => [name, signing])),
    "cidr-allocator-type": (value) =>
      value === "RangeAllocator"
        ? undefined
        : "RangeAllocator, since Azure's cloud provider allocates no pod ranges",
    controllers: without(neededControllers),
    "enable-garbage-collector": collected,
    "leader-elect-resource-name": only("kube-controller-manager", leader),
    "leader-elect-resource-namespace": only("kube-system", leader),
    "secure-port": probedPort,
    "tls-cipher-suites": anyHttp2,
  },
  schedulerExtraArgs: {
    ...everyComponent,
    "secure-port": probedPort,
    "tls-cipher-suites": anyHttp2,
    "write-config-to": stops,
  },
  etcdExtraArgs: {
    ...everyComponent,
    ...Object.fromEntries(discoveryNames.split(" ").map((name) => [name, discovery])),
    "config-file": leftOut("etcd then passes over all its arguments, kubeadm's too"),
    "client-cert-allowed-hostname": leftOut(
      "the API server's certificate for etcd has no host name",
    ),
    "enable-grpc-gateway": not(false, "members are asked by it"),
    "experimental-initial-corrupt-check": leftOut(
      "kubeadm sets the feature gate InitialCorruptCheck, and etcd does not start with both: set feature-gates",
    ),
    "listen-client-http-urls": leftOut("members are asked by HTTP where clients are served"),
    "listen-metrics-urls": (value) =>
      /(^|,)\s*https:\/\/(0\.0\.0\.0|127\.0\.0\.1|\[::\])?:2381\s*(,|$)/.test(value)
        ? "http at port 2381, since the machine asks there if etcd is well"
        : undefined,
    "peer-cert-allowed-cn": leftOut("each member's certificate has the name of its own machine"),
    "peer-cert-allowed-hostname": leftOut(
      "each member's certificate has the name of its own machine",
    ),
    "wal-dir": leftOut("only the data directory is on the machine's disk"),
  },
  kubeletExtraArgs: {
    ...everyComponent,
    address: (value) =>
      ["0.0.0.0", "::"].includes(value)
        ? undefined
        : "0.0.0.0, since API servers ask it from other machines, and its own machine at 127.0.0.1",
    "enable-controller-attach-detach": not(false, "disks are attached by the controller manager"),
    "enable-debugging-handlers": not(
      false,
      "logs and exec come by them, and what etcd says of its members too, without which no further update begins",
    ),
    "enable-server": not(false, "logs and exec come by the kubelet's server"),
    "feature-gates": (value) => {
      const gates = new Map(entriesOf(value).map(pairOf));
      const is = gates.get("GracefulNodeShutdown") ?? gates.get("AllBeta") ?? "true";
      return goBoolean(is) === false
        ? "GracefulNodeShutdown=true, by which machines end their pods before they go down"
        : undefined;
    },
    "node-labels": withoutOwnLabels,
    port: (value) =>
      goNumber(value) === 10_250
        ? undefined
        : "10250, where its machine asks for its pods in upgrades and renewals of certificates",
    "register-node": not(false, "a machine has to become a Node"),
    "root-dir": leftOut("the disk driver mounts below /var/lib/kubelet"),
    "rotate-server-certificates": not(
      true,
      "this program gives kubelets their serving certificates",
    ),
    "tls-cipher-suites": anyHttp2,
  },
};

/** What was expected of an argument's value where the program cannot do with it. */
export const lacking = (component: Component, name: string, value: string): string | undefined =>
  needs[component][name]?.(value);
