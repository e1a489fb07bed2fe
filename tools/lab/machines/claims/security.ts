import { type Claim, eventually, expectAll, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { everywhere } from "./nodes";

const owner = "root:root";

/** The most that the benchmark lets these have, in octal. Each glob has to match something. */
const mostPermissions = {
  "/etc/kubernetes/manifests/*.yaml": 0o600,
  "/etc/kubernetes/*.conf": 0o600,
  "/etc/kubernetes/pki/*.crt": 0o644,
  "/etc/kubernetes/pki/*.key": 0o600,
  "/etc/kubernetes/pki/etcd/*.crt": 0o644,
  "/etc/kubernetes/pki/etcd/*.key": 0o600,
  "/etc/zoned/api-server-*/*": 0o600,
  "/etc/zoned/encryption/*": 0o600,
  "/var/lib/etcd": 0o700,
  "/var/log/kubernetes/audit/*": 0o600,
} as const;

/** What each program has to be told. */
const flags: Readonly<Record<string, readonly string[]>> = {
  "kube-apiserver": [
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction,DenyServiceExternalIPs",
    "--kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt",
    ...["--profiling=false", "--audit-log-maxage=30", "--audit-log-maxbackup=10"],
    "--audit-log-maxsize=100",
  ],
  "kube-controller-manager": [
    ...["--profiling=false", "--use-service-account-credentials=true"],
    "--bind-address=127.0.0.1",
  ],
  "kube-scheduler": ["--profiling=false", "--bind-address=127.0.0.1"],
  etcd: ["--client-cert-auth=true", "--peer-client-cert-auth=true"],
};

const kubelet = {
  anonymous: false,
  authorization: "Webhook",
  readOnlyPort: 0,
  rotateCertificates: true,
  makeIPTablesUtilChains: true,
  seccompDefault: true,
};

interface Configz {
  readonly kubeletconfig: {
    readonly authentication: { readonly anonymous: { readonly enabled: boolean } };
    readonly authorization: { readonly mode: string };
    readonly readOnlyPort?: number;
    readonly rotateCertificates: boolean;
    readonly makeIPTablesUtilChains: boolean;
    readonly seccompDefault: boolean;
    readonly tlsCipherSuites: readonly string[];
  };
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

const statusOf = async (cluster: RealCluster, name: string, path: string): Promise<string> => {
  const curl = "curl --silent --insecure --output /dev/null --write-out '%{http_code}'";
  return (await cluster.inMachine(name, `${curl} https://127.0.0.1:6443${path}`)).trim();
};

export const securityClaims: readonly Claim[] = [
  {
    sentence: "without a credential the API answers probes, and nothing else",
    check: async (cluster) => {
      for (const name of await cluster.names("control-plane")) {
        for (const path of ["/livez", "/readyz", "/healthz"]) {
          expectSame(`${path} of ${name}`, await statusOf(cluster, name, path), "200");
        }
        for (const path of ["/api", "/version", "/metrics"]) {
          expectSame(`${path} of ${name}`, await statusOf(cluster, name, path), "401");
        }
      }
    },
  },
  {
    sentence:
      "files of a control plane have the owner and at most the permissions of the CIS benchmark (1.1.1–1.1.8, 1.1.11, 1.1.13–1.1.21)",
    check: async (cluster) => {
      let count = 0;
      for (const name of await cluster.names("control-plane")) {
        for (const [glob, most] of Object.entries(mostPermissions)) {
          const said = await cluster.inMachine(name, `stat --format '%n %a %U:%G' ${glob}`);
          for (const line of said.trim().split("\n")) {
            const [path = "", mode = "", by] = line.split(" ");
            const more = parseInt(mode, 8) & ~most & 0o777;
            expectSame(`${path} of ${name} (${mode})`, [more.toString(8), by], ["0", owner]);
            count += 1;
          }
        }
      }
      return `${count} files`;
    },
  },
  {
    sentence:
      "the programs of a control plane run with the arguments of the CIS benchmark (1.2.6–1.2.8, 1.2.14–1.2.19, 1.3.2, 1.3.3, 1.3.7, 1.4, 2.2, 2.5)",
    check: async (cluster) => {
      for (const name of await cluster.names("control-plane")) {
        for (const [program, wanted] of Object.entries(flags)) {
          const cmdline = `tr '\\0' '\\n' </proc/$(pgrep --exact ${program.slice(0, 15)})/cmdline`;
          const said = await cluster.inMachine(name, cmdline);
          expectAll(`${program} of ${name}`, said.trim().split("\n"), wanted);
        }
      }
    },
  },
  {
    sentence:
      "every kubelet runs with the configuration of the CIS benchmark (4.2.1, 4.2.2, 4.2.4, 4.2.6, 4.2.10, 4.2.12, 4.2.14), and kube-proxy's metrics are its machine's alone (4.3.1)",
    check: (cluster) =>
      everywhere(cluster, async (name) => {
        const text = await cluster.kubectl(["get", "--raw", `/api/v1/nodes/${name}/proxy/configz`]);
        const { authentication, authorization, readOnlyPort, tlsCipherSuites, ...others } = (
          JSON.parse(text) as Configz
        ).kubeletconfig;
        const { rotateCertificates, makeIPTablesUtilChains, seccompDefault } = others;
        const got = {
          anonymous: authentication.anonymous.enabled,
          authorization: authorization.mode,
          readOnlyPort: readOnlyPort ?? 0,
          ...{ rotateCertificates, makeIPTablesUtilChains, seccompDefault },
        };
        expectSame(`kubelet of ${name}`, got, kubelet);
        expectSame(
          `suites of ${name} without authenticated encryption`,
          tlsCipherSuites.filter((suite) => !/GCM|POLY1305/.test(suite)),
          [],
        );
        // It may still be starting, on a host with other work.
        await eventually(120, cluster.signal, async () => {
          const listening = await cluster.inMachine(name, "ss -Hltn 'sport = :10249'");
          expectSame(`metrics of ${name}`, /\s127\.0\.0\.1:10249\s/.test(listening), true);
        });
      }),
  },
  {
    sentence:
      "etcd has every Secret encrypted by secretbox, and none in clear (CIS benchmark, 1.2.27 and 1.2.28)",
    check: async (cluster) => {
      // A cluster without workers has none of its own.
      const metadata = { name: "stored", namespace: "default" };
      await cluster.apply({ apiVersion: "v1", kind: "Secret", metadata, stringData: { a: "b" } });
      const range = JSON.stringify({
        key: base64("/registry/secrets/"),
        range_end: base64("/registry/secrets0"),
      });
      const pki = "/etc/kubernetes/pki";
      let count = 0;
      for (const name of await cluster.names("control-plane")) {
        const said = await cluster.inMachine(
          name,
          `curl --silent --fail --noproxy '*' --cacert ${pki}/etcd/ca.crt --cert ${pki}/apiserver-etcd-client.crt ` +
            `--key ${pki}/apiserver-etcd-client.key --data '${range}' https://127.0.0.1:2379/v3/kv/range | ` +
            "jq --raw-output '.kvs[].value[:28]'",
        );
        const stored = said.trim().split("\n");
        const how = stored.map((text) => Buffer.from(text, "base64").toString());
        expectSame(`Secrets of ${name}`, [...new Set(how)], ["k8s:enc:secretbox:v1:"]);
        count += stored.length;
      }
      return `${count} Secrets`;
    },
  },
  {
    sentence: "a pod that owns its host is refused outside of kube-system",
    check: async (cluster) => {
      const pod = {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "owner", namespace: "default" },
        spec: {
          hostPID: true,
          containers: [{ name: "it", image: "it", securityContext: { privileged: true } }],
        },
      };
      const refusal = await cluster.apply(pod).then(
        () => "it was taken",
        (error: unknown) => String(error),
      );
      expectSame("refused by", /violates PodSecurity "baseline/.test(refusal), true);
    },
  },
];
