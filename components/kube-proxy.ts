import type { Settings } from "./settings";

type ProxySettings = Pick<Settings, "podCidr" | "proxyMode" | "proxyScheduler">;

/** What kube-proxy's ConfigMap says; kubeadm makes it once, when the cluster is founded. */
export const kubeProxyConfiguration = ({ podCidr, proxyMode, proxyScheduler }: ProxySettings) => ({
  apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
  kind: "KubeProxyConfiguration",
  mode: proxyMode,
  clusterCIDR: podCidr,
  ...(proxyMode === "ipvs" && { ipvs: { scheduler: proxyScheduler } }),
});

/** Kernel modules without which kube-proxy gives up in this mode. */
export const proxyModules = ({ proxyMode, proxyScheduler }: ProxySettings): string[] =>
  ({
    ipvs: ["ip_vs", `ip_vs_${proxyScheduler}`, "nf_conntrack"],
    nftables: ["nf_tables", "nf_conntrack"],
    iptables: ["nf_conntrack"],
  })[proxyMode];
