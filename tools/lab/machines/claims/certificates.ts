import { renewalFailed, validUntil } from "../../../../components/machine/renewal";
import { type Claim, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { saw, whileWriting } from "../writer";
import { everywhere } from "./nodes";

const daysUntil = (time: string): number => (Date.parse(time) - Date.now()) / 86_400_000;

interface Node {
  readonly metadata: { readonly name: string; readonly annotations: Record<string, string> };
  readonly status: { readonly addresses: { readonly type: string; readonly address: string }[] };
}

/** Until when the first to end of a control plane's is valid, by its files and what answers. */
const validOn = async (cluster: RealCluster, name: string): Promise<readonly string[]> => {
  const files = "kubeadm certs check-expiration --output json 2>/dev/null";
  const first =
    "jq --raw-output '[.certificates[] | select(.missing | not) | .expirationDate] | min'";
  const served = "openssl s_client -connect 127.0.0.1:6443 </dev/null 2>/dev/null";
  const end = "openssl x509 -noout -enddate -dateopt iso_8601 | cut --delimiter = --fields 2";
  const said = await cluster.inMachine(name, `${files} | ${first}; ${served} | ${end}`);
  return said.trim().split("\n");
};

/** What signs by the cluster's own configuration, but for two hours. */
const signForTwoHours = `
kubectl --kubeconfig /etc/kubernetes/admin.conf get configmap kubeadm-config --namespace kube-system \
  --output 'jsonpath={.data.ClusterConfiguration}' | sed '/^certificateValidityPeriod:/d' >/run/two-hours.yaml
echo 'certificateValidityPeriod: 2h0m0s' >>/run/two-hours.yaml
kubeadm certs renew all --config /run/two-hours.yaml`;

export const certificateClaims: readonly Claim[] = [
  {
    sentence:
      "a control plane's timer is set; its service does nothing while certificates are valid for 60 days, and the Node says until when",
    check: async (cluster) => {
      const nodes = await cluster.get<Node>("nodes");
      let least = Infinity;
      for (const name of await cluster.names("control-plane")) {
        const active = await cluster.inMachine(
          name,
          "systemctl is-active zoned-certificates.timer",
        );
        expectSame(`timer of ${name}`, active.trim(), "active");
        const pids = "pgrep --exact 'etcd|kube-apiserver|kube-controller|kube-scheduler' | sort";
        const before = await cluster.inMachine(name, pids);
        await cluster.inMachine(name, "systemctl start zoned-certificates.service");
        expectSame(`processes of ${name}`, await cluster.inMachine(name, pids), before);
        const node = nodes.find(({ metadata }) => metadata.name === name);
        const days = daysUntil(node?.metadata.annotations[validUntil] ?? "");
        if (!(days > 300))
          throw new Error(`the Node of ${name} says ${days} days, expected a year`);
        least = Math.min(least, days);
      }
      return `${Math.floor(least)} days`;
    },
  },
  {
    sentence:
      "every kubelet proves itself by a certificate of the cluster's CA for its name and its address, and `kubectl logs` works by API servers that verify it (1.2.5, 4.2.9)",
    check: async (cluster) => {
      const nodes = await cluster.get<Node>("nodes");
      const [controlPlane = ""] = await cluster.names("control-plane");
      await everywhere(cluster, async (name) => {
        const { status } = nodes.find(({ metadata }) => metadata.name === name)!;
        const { address = "" } = status.addresses.find(({ type }) => type === "InternalIP") ?? {};
        for (const host of [address, name]) {
          const at = `--resolve ${name}:10250:${address} https://${host}:10250/healthz`;
          const curl = `curl --silent --cacert /etc/kubernetes/pki/ca.crt --output /dev/null --write-out '%{http_code}' ${at}`;
          expectSame(
            `kubelet at ${host}`,
            (await cluster.inMachine(controlPlane, curl)).trim(),
            "401",
          );
        }
      });
      const logs = [
        "logs",
        "--namespace",
        "kube-system",
        "--tail=1",
        `kube-apiserver-${controlPlane}`,
      ];
      if ((await cluster.kubectl(logs)).trim() === "") throw new Error("the API server has no log");
    },
  },
  {
    sentence:
      "certificates that end in two hours are renewed for a year by the timer's service, which restarts what uses them, one program after another, under writes",
    check: async (cluster) => {
      const [name = ""] = await cluster.names("control-plane");
      await cluster.inMachine(name, `set -e; ${signForTwoHours}`);
      const [files = ""] = await validOn(cluster, name);
      expectSame(`files of ${name} that end today`, daysUntil(files) < 0.1, true);
      const { written } = await whileWriting(cluster, () =>
        cluster.inMachine(name, "systemctl start zoned-certificates.service"),
      );
      for (const until of await validOn(cluster, name)) {
        expectSame(`${until} of ${name} is far`, daysUntil(until) > 300, true);
      }
      const [node] = await cluster.get<Node>(
        ...["nodes", "--field-selector", `metadata.name=${name}`],
      );
      const { annotations } = node!.metadata;
      expectSame("the Node's date is far", daysUntil(annotations[validUntil] ?? "") > 300, true);
      expectSame("a failure", annotations[renewalFailed] ?? "none", "none");
      return saw(written);
    },
  },
];
