import { etcdOf, versions } from "../../../../components/versions";
import { isReady } from "../../../local-azure/machines/simulated/nodes/node";
import { succeeded } from "../../local-cloud";
import { type Claim, eventually, expectAll, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";

interface Node {
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly spec: {
    readonly providerID?: string;
    readonly taints?: readonly { readonly key: string }[];
  };
  readonly status: {
    readonly nodeInfo: Readonly<Record<string, string>>;
  };
}

/**
 * What first-boot.sh loads, and what it loads where the kernel has it; Debian's and Ubuntu's have
 * all.
 */
const modules = [
  ...["overlay", "br_netfilter", "nf_conntrack", "ip_vs", "ip_vs_rr", "ip_vs_wrr", "ip_vs_sh"],
  ...["lc", "wlc", "fo", "ovf", "lblc", "lblcr", "dh", "sed", "nq", "mh"].map(
    (one) => `ip_vs_${one}`,
  ),
];

export const allReady = async (cluster: RealCluster, count: number): Promise<Node[]> => {
  const nodes = await cluster.get<Node>("nodes");
  expectSame("Ready nodes", nodes.filter(isReady).length, count);
  return nodes;
};

export const everywhere = async (
  cluster: RealCluster,
  check: (name: string) => Promise<void>,
): Promise<void> => {
  await Promise.all((await cluster.names()).map(check));
};

export const hasModules = async (cluster: RealCluster, name: string): Promise<void> => {
  const loaded = await cluster.inMachine(name, "lsmod");
  expectAll(
    `modules of ${name}`,
    loaded.split("\n").map((line) => line.split(" ")[0]!),
    modules,
  );
};

export const comesUp: Claim = {
  sentence: "one `pulumi up` makes the machines and the cluster on them",
  isGround: true,
  check: async (cluster) => void succeeded(await cluster.up()),
};

export const areInitialized: Claim = {
  sentence:
    "every machine is a Ready node with its zone's label and its provider id, and takes pods",
  check: async (cluster) => {
    const machines = await cluster.machines();
    const nodes = await eventually(60, cluster.signal, () => allReady(cluster, machines.length));
    for (const { name, zone } of machines) {
      const node = nodes.find(({ metadata }) => metadata.name === name);
      expectSame(`zone of ${name}`, node?.metadata.labels["topology.kubernetes.io/zone"], zone);
      expectSame(`taints of ${name}`, node?.spec.taints ?? [], []);
      const id = `azure://${cluster.group}/providers/Microsoft.Compute/virtualMachines/${name}`;
      expectSame(`provider id of ${name}`, node?.spec.providerID, id);
    }
  },
};

export const nodeClaims: readonly Claim[] = [
  areInitialized,
  {
    sentence:
      "kubelet, kubeadm, kubectl and every image of the control plane have the pinned versions",
    check: async (cluster) => {
      const expected = `v${versions.kubernetes}`;
      for (const { metadata, status } of await cluster.get<Node>("nodes")) {
        expectSame(`kubelet of ${metadata.name}`, status.nodeInfo["kubeletVersion"], expected);
      }
      await everywhere(cluster, async (name) => {
        const said = await cluster.inMachine(
          name,
          "kubeadm version -o short; kubectl version --client -o json",
        );
        expectSame(`kubeadm of ${name}`, said.split("\n")[0], expected);
        expectSame(`kubectl of ${name}`, /"gitVersion": "([^"]+)"/.exec(said)?.[1], expected);
      });
      const text = await cluster.kubectl([
        ...["get", "pods", "--namespace", "kube-system", "--selector", "tier=control-plane"],
        ...["--output", "jsonpath={.items[*].spec.containers[*].image}"],
      ]);
      const tags = text.split(" ").filter((image) => !image.includes("/etcd:"));
      expectSame("tags", [...new Set(tags.map((image) => image.split(":")[1]))], [expected]);
      expectAll("images", text.split(" "), [`registry.k8s.io/etcd:${etcdOf(versions.kubernetes)}`]);
    },
  },
  {
    sentence:
      "the kubelet uses the containerd beneath Docker, whose daemon runs and makes no rules of its own",
    check: async (cluster) => {
      for (const { metadata, status } of await cluster.get<Node>("nodes")) {
        const runtime = status.nodeInfo["containerRuntimeVersion"] ?? "";
        if (!runtime.startsWith("containerd://")) {
          throw new Error(`runtime of ${metadata.name}: got ${runtime}, expected containerd's`);
        }
      }
      await everywhere(cluster, async (name) => {
        const settings = await cluster.inMachine(
          name,
          "systemctl is-active docker containerd; docker info -f '{{.CgroupDriver}}'; cat /etc/docker/daemon.json",
        );
        expectSame(`Docker of ${name}`, settings.split("\n").slice(0, 3), [
          "active",
          "active",
          "systemd",
        ]);
        expectSame("iptables", /"iptables": (\w+)/.exec(settings)?.[1], "false");
        const rules = await cluster.inMachine(
          name,
          "iptables-save 2>/dev/null | grep -ci docker || true",
        );
        expectSame(`Docker's rules on ${name}`, rules.trim(), "0");
      });
    },
  },
  {
    sentence: "containers live in systemd's cgroups, of version 2",
    check: (cluster) =>
      everywhere(cluster, async (name) => {
        const said = await cluster.inMachine(
          name,
          "stat -fc %T /sys/fs/cgroup; ls -d /sys/fs/cgroup/kubepods.slice; cat /proc/$(pgrep -o kube-proxy)/cgroup",
        );
        const [kind, slice, proxy = ""] = said.trim().split("\n");
        expectSame(
          `cgroups of ${name}`,
          [kind, slice],
          ["cgroup2fs", "/sys/fs/cgroup/kubepods.slice"],
        );
        // It asks for a share of the processors, and for no more than that.
        if (!/kubepods-burstable-pod[0-9a-f_]+\.slice\/cri-containerd-/.test(proxy)) {
          throw new Error(
            `kube-proxy of ${name} is in ${proxy}, expected a scope of containerd's below kubepods.slice`,
          );
        }
      }),
  },
  {
    sentence: "`lsmod` has every module of IPVS on every machine",
    check: (cluster) => everywhere(cluster, (name) => hasModules(cluster, name)),
  },
];
