import type { Claim } from "../claim";
import { stepsIn } from "../findings";

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
