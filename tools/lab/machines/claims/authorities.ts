import { copyFileSync } from "node:fs";

import { unchanged } from "../../local-cloud";
import { type Claim, eventually, expectAll, expectSaid, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { Survivor } from "../workloads";
import { stage } from "../writer";
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
