import { etcdOf, versions } from "../../../../components/versions";
import { isReady } from "../../../local-azure/machines/simulated/nodes/node";
import { succeeded } from "../../local-cloud";
import { type Claim, eventually, expectAll, expectSame } from "../claim";
import { stepsIn } from "../findings";
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

const mostTimes = 1.2;

/**
 * What somebody would type who has this machine, its patches for slow processors, and nothing else.
 */
const byHand = `
set -e
kubectl --kubeconfig /etc/kubernetes/admin.conf get configmap kubeadm-config --namespace kube-system \
  --output 'jsonpath={.data.ClusterConfiguration}' >/root/by-hand.yaml
cat >>/root/by-hand.yaml <<END
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  criSocket: unix:///run/containerd/containerd.sock
patches:
  directory: /etc/zoned/patches
timeouts:
  controlPlaneComponentHealthCheck: 10m0s
  kubernetesAPICall: 10m0s
END
kubeadm reset --force --cri-socket unix:///run/containerd/containerd.sock
# A kubelet that waits for a pod network, as every initial control plane's does, looks for it ten times a second.
rm -rf /etc/cni/net.d
`;

export const initializationClaims: readonly Claim[] = [
  {
    sentence: `\`kubeadm init\` takes at most ${mostTimes} times as long in the bootstrap step as by hand on the same machine, each after a boot`,
    check: async (cluster) => {
      const [name = ""] = await cluster.names();
      const steps = stepsIn(await cluster.inMachine(name, "cat /var/log/zoned.log"));
      const ours = steps.find(({ step }) => step === "bootstrap: kubeadm init")?.seconds ?? NaN;
      await cluster.inMachine(name, byHand);
      await cluster.ask("POST", name, "restart");
      await cluster.inMachine(name, "systemctl start containerd docker");
      const took = await cluster.inMachine(
        name,
        "s=$(date +%s%3N); kubeadm init --config /root/by-hand.yaml && echo $(($(date +%s%3N) - s))",
      );
      const bare = Number(took.trim().split("\n").at(-1)) / 1000;
      const ratio = ours / bare;
      const figures = `${ours} s against ${bare.toFixed(0)} s, ${ratio.toFixed(2)} times`;
      if (!(ratio <= mostTimes)) throw new Error(`${figures}, expected at most ${mostTimes}`);
      return figures;
    },
  },
];
