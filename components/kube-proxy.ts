import type { Settings } from "./settings";

type ProxySettings = Pick<Settings, "podCidr" | "proxyMode" | "proxyScheduler">;

/** Folder in kube-proxy's pod where its ConfigMap is, as kubeadm lays it out. */
const folder = "/var/lib/kube-proxy";

/** How kube-proxy forwards; kubeadm gets the same for its own ConfigMap when the cluster is founded. */
export const kubeProxyConfiguration = ({ podCidr, proxyMode, proxyScheduler }: ProxySettings) => ({
  apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
  kind: "KubeProxyConfiguration",
  clientConnection: { kubeconfig: `${folder}/kubeconfig.conf` },
  mode: proxyMode,
  clusterCIDR: podCidr,
  ...(proxyMode === "ipvs" && { ipvs: { scheduler: proxyScheduler } }),
});

/** As whom kube-proxy speaks to the API: its pod's service account. */
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
 * Whether rules of the mode before stay in the kernel when kube-proxy starts in the other one.
 *
 * kube-proxy takes nftables' rules away when it starts in another mode, and the others' when it starts in
 * nftables; between iptables and IPVS it takes away nothing (cmd/kube-proxy/app/server_linux.go).
 */
export const leavesRules = (
  before: Settings["proxyMode"] | undefined,
  now: Settings["proxyMode"],
): boolean => before !== undefined && before !== now && before !== "nftables" && now !== "nftables";
