import type { Settings } from "../settings/settings";

type ProxySettings = Pick<Settings, "podCidr" | "proxyMode" | "proxyScheduler" | "kubeProxy">;

/** Folder in kube-proxy's pod where its ConfigMap is, as kubeadm lays it out. */
const folder = "/var/lib/kube-proxy";

/**
 * How long IPVS keeps a TCP connection on which nothing is sent. After it the kernel forgets the
 * connection and tells neither end: the next packet of one is answered by a reset, or by nothing.
 *
 * The kernel's own 900 s are less than what the ends and the balancer keep it for. A TCP keepalive
 * with Linux's defaults comes after 7200 s, and a dead end is found out 9 × 75 s later
 * (net.ipv4.tcp_keepalive_*): this is a little longer than both. It is also longer than Azure's
 * load balancer keeps an idle connection, 4 to 100 minutes, at whose end it resets both ends.
 */
const ipvsTcpTimeout = "2h15m";

/**
 * How kube-proxy forwards; kubeadm gets the same for its own ConfigMap when the cluster is initialized.
 */
export const kubeProxyConfiguration = ({
  podCidr,
  proxyMode,
  proxyScheduler,
  kubeProxy,
}: ProxySettings) => ({
  apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
  kind: "KubeProxyConfiguration",
  clientConnection: { kubeconfig: `${folder}/kubeconfig.conf` },
  mode: proxyMode,
  clusterCIDR: podCidr,
  ...kubeProxy,
  ...(proxyMode === "ipvs" && {
    ipvs: {
      scheduler: proxyScheduler,
      tcpTimeout: ipvsTcpTimeout,
      ...(kubeProxy["ipvs"] as object | undefined),
    },
  }),
});

/** kube-proxy's credential for the API: its pod's service account. */
export const kubeProxyKubeconfig = (server: string) => ({
  apiVersion: "v1",
  kind: "Config",
  clusters: [
    {
      name: "default",
      cluster: {
        "certificate-authority": "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
        server,
      },
    },
  ],
  users: [
    {
      name: "default",
      user: { tokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token" },
    },
  ],
  contexts: [
    { name: "default", context: { cluster: "default", namespace: "default", user: "default" } },
  ],
  "current-context": "default",
});

/** Kernel modules without which kube-proxy gives up in this mode. */
export const proxyModules = ({ proxyMode, proxyScheduler }: ProxySettings): string[] =>
  ({
    ipvs: ["ip_vs", `ip_vs_${proxyScheduler}`, "nf_conntrack"],
    nftables: ["nf_tables", "nf_conntrack"],
    iptables: ["nf_conntrack"],
  })[proxyMode];

/**
 * Shows, in kube-proxy's pod, that it works with its mode: of all that it writes into the
 * node's kernel this comes last, or at once with the rest (syncProxyRules in
 * pkg/proxy/{ipvs,iptables,nftables}/proxier.go). Its own /healthz is healthy before it has written
 * anything (pkg/proxy/healthcheck/proxy_health.go).
 */
const signs: Readonly<Record<Settings["proxyMode"], string>> = {
  ipvs: "iptables -t nat -S KUBE-SERVICES 2>&1 | grep -q KUBE-CLUSTER-IP",
  iptables: "iptables -t nat -S KUBE-SERVICES 2>&1 | grep -q KUBE-NODEPORTS",
  nftables: "nft list chain ip kube-proxy services >/dev/null 2>&1",
};

/**
 * Ends when kube-proxy works with its mode. It waits by itself, since the kubelet's way into a
 * container is a long one.
 */
export const readinessScript = (mode: Settings["proxyMode"]): string =>
  `until ${signs[mode]}; do sleep 2; done`;

/**
 * What shows, in kube-proxy's pod, that a mode which kube-proxy does not clean up after in this one
 * has left something in the node's kernel.
 *
 * It deletes nftables' rules when it starts in another mode, and the others' when it starts in
 * nftables, but for the sets that IPVS has for IPv6; between iptables and IPVS it deletes nothing
 * (cmd/kube-proxy/app/server_linux.go, pkg/proxy/ipvs/cleanup.go; seen in a kernel with all three).
 */
const traces: Readonly<Record<Settings["proxyMode"], string>> = {
  ipvs: "iptables-save -t nat | grep -q ^:KUBE-SVC-",
  iptables: "ipset list -n | grep -q ^KUBE-",
  nftables: "ipset list -n | grep -q ^KUBE-",
};

/**
 * Deletes everything of kube-proxy from a node's kernel where another mode has left something,
 * before it starts in this one, with nothing but what its image has.
 *
 * The first of its own clean-ups fails where IPVS was: it removes chains that IPVS's rules still
 * lead to, and those only then. Where only this mode has been, the rules in force stay.
 */
export const cleanupScript = (mode: Settings["proxyMode"]): string => `${traces[mode]} || exit 0
tries=3
until kube-proxy --cleanup; do
  tries=$((tries - 1))
  [ $tries -gt 0 ] || exit 1
done
for set in $(ipset list -n | grep ^KUBE-); do
  ipset destroy "$set" || exit 1
done`;
