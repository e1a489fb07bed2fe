import { copyFileSync } from "node:fs";

import { renewalFailed, validUntil } from "../../../../components/machine/timers";
import { unchanged } from "../../local-cloud";
import { type Claim, eventually, expectAll, expectSaid, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { saw, stage, Survivor, whileWriting } from "../workloads";
import { allReady, everywhere } from "./nodes";

const pki = "/etc/kubernetes/pki";
const count = "grep --count 'BEGIN CERTIFICATE'";

/** One stage, by the kubeconfig of before; whoever asks next has the stack's own of now. */
async function renewingStage(cluster: RealCluster, says: string): Promise<string> {
  const seen = await stage(cluster, says);
  cluster.renewKubeconfig();
  const { length } = await cluster.names();
  await eventually(300, cluster.signal, async () => allReady(cluster, length));
  return seen;
}

/** How many CAs each machine and its pods trust. */
async function expectTrusted(cluster: RealCluster, cas: number): Promise<void> {
  await everywhere(cluster, async (name) => {
    const files = `${pki}/ca.crt /var/lib/kubelet/pods/*/volumes/kubernetes.io~projected/kube-api-access-*/ca.crt`;
    // A kubelet brings a changed ConfigMap into its pods within two minutes.
    await eventually(300, cluster.signal, async () => {
      const said = await cluster.inMachine(
        name,
        `for f in ${files}; do ${count} $f; done | sort -u`,
      );
      expectSame(`CAs that ${name} and its pods trust`, said.trim(), String(cas));
    });
  });
}

/** What answers, and what asks, proves itself by the first CA of the file alone. */
async function expectSigned(cluster: RealCluster): Promise<void> {
  const machines = await cluster.machines();
  for (const { name, role } of machines) {
    const first = `-CAfile <(openssl x509 -in ${pki}/ca.crt)`;
    const etcd = `-CAfile <(openssl x509 -in ${pki}/etcd/ca.crt)`;
    await cluster.inMachine(
      name,
      `set -e; openssl verify ${first} /var/lib/kubelet/pki/kubelet-client-current.pem /var/lib/kubelet/pki/serving.crt` +
        (role === "worker"
          ? ""
          : `; openssl verify ${first} ${pki}/apiserver.crt ${pki}/apiserver-kubelet-client.crt; ` +
            `openssl verify ${etcd} ${pki}/etcd/{server,peer,healthcheck-client}.crt ${pki}/apiserver-etcd-client.crt`),
    );
  }
  const { name: controlPlane, address: api } = machines.find(
    ({ role }) => role === "control-plane",
  )!;
  const ca = "/run/first-ca.crt";
  await cluster.inMachine(controlPlane, `openssl x509 -in ${pki}/ca.crt >${ca}`);
  const asked = [
    `${api}:6443/readyz`,
    ...machines.map(({ address }) => `${address}:10250/healthz`),
  ];
  for (const url of asked) {
    const curl = `curl --silent --cacert ${ca} --output /dev/null --write-out '%{http_code}'`;
    const code = await cluster.inMachine(controlPlane, `${curl} https://${url}`);
    expectSame(url, code.trim(), url.endsWith("readyz") ? "200" : "401");
  }
}

interface NodeMetrics {
  readonly metadata: { readonly name: string };
  readonly usage: { readonly cpu: string; readonly memory: string };
}

/** By the API server, which verifies metrics-server, which verifies kubelets. */
const expectMeasured = async (cluster: RealCluster): Promise<string> => {
  const names = await cluster.names();
  return eventually(600, cluster.signal, async () => {
    const text = await cluster.kubectl(["get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes"]);
    const { items } = JSON.parse(text) as { items: readonly NodeMetrics[] };
    expectAll(
      "measured Nodes",
      items.map(({ metadata }) => metadata.name),
      names,
    );
    return items.map(({ metadata, usage }) => `${metadata.name} ${usage.memory}`).join(", ");
  });
};

let survivor: Survivor;
let old: string;

export const authorityClaims: readonly Claim[] = [
  {
    sentence: "metrics-server runs in a pod and measures every Node",
    check: expectMeasured,
  },
  {
    sentence:
      "a first `pulumi up` with another `caGeneration` has machines and pods trust both CAs, by the kubeconfig of before",
    isGround: true,
    check: async (cluster) => {
      survivor = await Survivor.start(cluster);
      old = `${await cluster.kubeconfig()}.old`;
      copyFileSync(await cluster.kubeconfig(), old);
      await cluster.configure({ caGeneration: 2 });
      const seen = await renewingStage(cluster, "trust CA 2");
      await expectTrusted(cluster, 2);
      return seen;
    },
  },
  {
    sentence:
      "a second one has the API server, etcd, kubelets and their clients prove themselves by CA 2, while who has a certificate of CA 1 is admitted",
    isGround: true,
    check: async (cluster) => {
      const seen = await renewingStage(cluster, "signed by CA 2");
      await expectSigned(cluster);
      await cluster.kubectl([...asBefore(old), "get", "nodes"]);
      return seen;
    },
  },
  {
    sentence: "a third one has nobody trust CA 1, and who has a certificate of it is refused",
    isGround: true,
    check: async (cluster) => {
      const seen = await renewingStage(cluster, "nobody trust CA 1");
      await expectTrusted(cluster, 1);
      await expectSigned(cluster);
      const said = await cluster
        .kubectl([...asBefore(old), "get", "nodes"])
        .catch((error: Error) => error.message);
      expectSaid(said, ["Unauthorized"]);
      return seen;
    },
  },
  {
    sentence: "a pod of the worker was never restarted, and its Deployment scales",
    check: async (cluster) => {
      await survivor.expectSame(cluster);
      await survivor.scale(cluster, 3);
    },
  },
  {
    sentence: "metrics-server measures every Node again",
    check: expectMeasured,
  },
  {
    sentence: "the API server reaches every kubelet, and a `pulumi up` after them changes nothing",
    check: async (cluster) => {
      await everywhere(cluster, async (name) => {
        expectSame(
          `kubelet of ${name}`,
          await cluster.kubectl(["get", "--raw", `/api/v1/nodes/${name}/proxy/healthz`]),
          "ok",
        );
      });
      unchanged(await cluster.up());
    },
  },
];

/** With the certificate of before, whoever the server is. */
const asBefore = (kubeconfig: string): string[] => [
  ...["--kubeconfig", kubeconfig, "--insecure-skip-tls-verify"],
];

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
