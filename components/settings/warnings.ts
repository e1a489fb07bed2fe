import { isPrivate, overlap } from "./rules/ranges";
import { toRemove, toSet } from "./problem";
import type { Settings } from "./settings";
import { machinesOf } from "./topology";

/** Whether a range is wider than any network of one owner. */
const isOpen = (ranges: readonly string[]): boolean =>
  ranges.some((range) => Number(range.split("/")[1]) < 8);

/** Whether no request to a public address comes from there. A lab may make its internet of RFC 2544's range. */
const isInside = (range: string): boolean => isPrivate(range) && !overlap(range, "198.18.0.0/15");

/** How many control planes the fullest zone has. */
function fullest(settings: Settings): number {
  const zones = machinesOf(settings)
    .filter(({ role }) => role === "control-plane")
    .map(({ zone }) => zone);
  return Math.max(...zones.map((zone) => zones.filter((other) => other === zone).length));
}

/** Where there are node ports, if not where Azure reaches machines. In subnets of others their addresses are not known yet. */
function hiddenNodePorts(settings: Settings): readonly string[] {
  const ranges = (settings.kubeProxy["nodePortAddresses"] ?? []) as readonly string[];
  const machines = machinesOf(settings).map(({ address }) => `${address}/32`);
  const isReached = (range: string): boolean =>
    ["primary", "all"].includes(range) ||
    (/^[\d.]+\//.test(range) &&
      (settings.nodeSubnets.length > 0
        ? !overlap(range, "127.0.0.0/8")
        : machines.some((address) => overlap(range, address))));
  return ranges.some(isReached) ? [] : ranges;
}

/** What is allowed, and may be a mistake. Only for settings without problems. */
export const warnings = (settings: Settings): string[] =>
  [
    {
      holds: settings.apiAccess === "public" && isOpen(settings.apiAccessCidrs),
      message:
        "apiAccessCidrs opens the Kubernetes API to the whole internet; only its " +
        "certificates guard it.",
    },
    {
      holds: settings.apiAccess === "public" && settings.apiAccessCidrs.every(isInside),
      message:
        `apiAccess is public, and apiAccessCidrs has private ranges alone (${settings.apiAccessCidrs.join(", ")}): who asks a ` +
        "public address comes from a public address, so that nobody reaches the API, pulumi up neither. Add the address by which " +
        `you leave: pulumi config set --path 'apiAccessCidrs[${settings.apiAccessCidrs.length}]' "$(curl -s https://api.ipify.org)/32". ` +
        "Or, before the first pulumi up, keep the API inside: pulumi config set apiAccess private.",
    },
    {
      holds: isOpen(settings.sshAccessCidrs),
      message:
        "sshAccessCidrs opens SSH to the whole internet; nodes have no public address, " +
        "but whatever forwards to them is open.",
    },
    ...(["networkCidr", "podCidr", "serviceCidr"] as const).map((key) => ({
      holds:
        !isPrivate(settings[key]) && !(key === "networkCidr" && settings.nodeSubnets.length > 0),
      message:
        `${key} ${settings[key]} is not private: nothing in the cluster can reach those addresses ` +
        `in the internet. Unless they are your own: ${toRemove(key)}.`,
    })),
    {
      holds: settings.workerPools.every(({ count }) => count === 0),
      message:
        "There are no workers: Services of type LoadBalancer get no backend, since Azure's cloud " +
        "provider leaves control planes out. If you need them: " +
        (settings.workerPools.length === 0
          ? "pulumi config set --path 'workerPools[0].name' workers; "
          : "") +
        "pulumi config set --path 'workerPools[0].count' 2.",
    },
    {
      holds:
        settings.controlPlaneCount > 1 && fullest(settings) > (settings.controlPlaneCount - 1) / 2,
      message:
        `${settings.controlPlaneCount} control planes over zone ${settings.zones.join(" and ")}: ` +
        "losing one zone can take etcd's majority. Use three zones, where the region has them.",
    },
    {
      holds: settings.autoRepair && !settings.cloudProvider,
      message:
        "autoRepair is true and cloudProvider false: only a cloud provider tells which machine of Azure a Node is, " +
        "so that nothing is repaired without one of your own. Unless you have one: pulumi config set cloudProvider true.",
    },
    {
      holds: settings.cloudProvider && hiddenNodePorts(settings).length > 0,
      message:
        `kubeProxy.nodePortAddresses (${hiddenNodePorts(settings).join(", ")}) has no address of the machines: Azure's balancers ask there, ` +
        "by node ports, whether a Service of type LoadBalancer is served, and send nothing where nobody answers. If you need such Services: " +
        `${toRemove("kubeProxy.nodePortAddresses")}.`,
    },
    {
      // kube-proxy has warned since 1.35, but only the minor after 1.39 needs another mode.
      holds:
        settings.proxyMode === "ipvs" && Number(settings.kubernetesVersion.split(".")[1]) >= 39,
      message:
        "proxyMode ipvs is deprecated: off by default from Kubernetes 1.40, gone in 1.43. " +
        "Move to nftables before (pulumi config set proxyMode nftables).",
    },
    {
      // kubernetes/kubernetes #117119; a value that is no number is refused elsewhere.
      holds:
        Number(settings.kubeadm.kubeletExtraArgs["event-qps"] ?? 50) === 0 &&
        Number(settings.kubernetesVersion.split(".")[1]) >= 37,
      message:
        "kubeadm.kubeletExtraArgs.event-qps 0 is no limit since Kubernetes 1.37: pods that fail in a loop can " +
        `flood the API with events. Kubelets before took it as 50: ${toSet("kubeadm.kubeletExtraArgs.event-qps", "50")}.`,
    },
  ]
    .filter(({ holds }) => holds)
    .map(({ message }) => message);
