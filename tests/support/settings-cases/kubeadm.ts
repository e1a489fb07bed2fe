import type { Values } from "../stack";
import type { Cases } from "./case";

const kubeadm = (name: string, value: unknown): Values => ({ kubeadm: { [name]: value } });

const owned: readonly [string, string, string, string][] = [
  ["apiServer", "service-cluster-ip-range", "10.0.0.0/16", "set serviceCidr"],
  ["apiServer", "advertise-address", "10.0.0.1", "kubeadm sets it"],
  ["apiServer", "tls-cert-file", "/my.crt", "kubeadm sets it"],
  ["controllerManager", "cluster-cidr", "10.0.0.0/16", "set podCidr"],
  ["controllerManager", "cloud-provider", "azure", "kubeadm sets it"],
  ["scheduler", "kubeconfig", "/my.conf", "kubeadm sets it"],
  ["etcd", "initial-cluster", "a=https://10.0.0.1:2380", "kubeadm sets it"],
  ["kubelet", "node-ip", "10.0.0.1", "kubeadm sets it"],
  ["kubelet", "register-with-taints", "a=b:NoSchedule", "set taints of a pool"],
];

export const kubeadmCases: Cases = {
  refused: [
    ...owned.map(([component, name, value, says]) => ({
      flaw: `${name} of ${component}, on which all parts agree`,
      values: kubeadm(`${component}ExtraArgs`, { [name]: value }),
      says: `kubeadm.${component}ExtraArgs.${name} is not yours to set, expected it left out, since all parts of a cluster have to agree on it: ${says}`,
    })),
    ...[
      ["apiServer", "max-request-inflight", "did you mean max-requests-inflight?"],
      ["controllerManager", "node-monitor-perio", "did you mean node-monitor-period?"],
      ["scheduler", "profile", "is no argument of that component"],
      ["etcd", "quota-backend-byte", "did you mean quota-backend-bytes?"],
    ].map(([component, name, says]) => ({
      flaw: `${name}, which ${component} does not have`,
      values: kubeadm(`${component}ExtraArgs`, { [String(name)]: "1" }),
      says: String(says),
    })),
    ...[
      ["anonymous-auth", false],
      ["anonymous-auth", "False"],
      ["tls-min-version", "VersionTLS13"],
    ].map(([name, value]) => ({
      flaw: `${name} ${value}, with which the balancer finds no API`,
      values: kubeadm("apiServerExtraArgs", { [String(name)]: value }),
      says: "the balancer's probe is anonymous and speaks TLS 1.2",
    })),
    {
      flaw: "an unknown part",
      values: kubeadm("apiserverExtraArgs", { v: "2" }),
      says: "kubeadm.apiserverExtraArgs is not a known name",
    },
    {
      flaw: "a list of arguments",
      values: kubeadm("etcdExtraArgs", ["--quota=1"]),
      says: "kubeadm.etcdExtraArgs is",
    },
    {
      flaw: "an argument with more below",
      values: kubeadm("kubeletExtraArgs", { v: [1] }),
      says: "kubeadm.kubeletExtraArgs.v is [1]",
    },
    ...["apiServer", "controllerManager", "scheduler", "etcd", "kubelet"].map((component) => ({
      flaw: `an argument of ${component} with its dashes`,
      values: kubeadm(`${component}ExtraArgs`, { "--v": "2" }),
      says: `kubeadm.${component}ExtraArgs.--v is not the name of an argument`,
    })),
    {
      flaw: "text for a list of checks",
      values: kubeadm("ignorePreflightErrors", "NumCPU"),
      says: "kubeadm.ignorePreflightErrors is",
    },
    {
      flaw: "an unknown time-out",
      values: kubeadm("timeouts", { discover: "5m" }),
      says: "did you mean discovery?",
    },
    {
      flaw: "a time-out without a unit",
      values: kubeadm("timeouts", { discovery: 300 }),
      says: 'kubeadm.timeouts.discovery is "300"',
    },
    {
      flaw: "a time-out in days",
      values: kubeadm("timeouts", { discovery: "1d" }),
      says: "a duration such as",
    },
    {
      flaw: "a patch for nothing",
      values: kubeadm("patches", { "apiserver.yaml": "{}" }),
      says: "is not a name that kubeadm takes a patch from",
    },
    {
      flaw: "a patch of an unknown type",
      values: kubeadm("patches", { "etcd+json6902.yaml": "[]" }),
      says: "is not a name",
    },
    {
      flaw: "a patch that kubeadm would pass over",
      values: kubeadm("patches", { "etcd.txt": "{}" }),
      says: "is not a name",
    },
    {
      flaw: "a patch in another folder",
      values: kubeadm("patches", { "etcd/../../x.yaml": "{}" }),
      says: "is not a name",
    },
    {
      flaw: "a patch that is no YAML",
      values: kubeadm("patches", { "etcd.yaml": "a: [" }),
      says: "an object in YAML or JSON",
    },
    {
      flaw: "an empty patch",
      values: kubeadm("patches", { "etcd.yaml": "" }),
      says: "an object in YAML or JSON",
    },
    ...["a: 1\n---\nb: [\n", "a: 1\n---\n- 2\n", "a: 1\n---\nnull\n", "text"].map((text) => ({
      flaw: `${JSON.stringify(text)} for a patch`,
      values: kubeadm("patches", { "etcd.yaml": text }),
      says: "an object in YAML or JSON",
    })),
    {
      flaw: "a JSON patch that is no list",
      values: kubeadm("patches", { "etcd+json.yaml": "op: add" }),
      says: "a list of JSON patch operations",
    },
  ],
  accepted: [
    {
      merit: "arguments",
      values: kubeadm("apiServerExtraArgs", { "max-requests-inflight": 800, profiling: false }),
    },
    {
      merit: "what the balancer's probe can live with",
      values: kubeadm("apiServerExtraArgs", {
        "anonymous-auth": true,
        "tls-min-version": "VersionTLS12",
      }),
    },
    {
      merit: "another component's TLS 1.3",
      values: kubeadm("schedulerExtraArgs", { "tls-min-version": "VersionTLS13" }),
    },
    {
      merit: "every time-out in use",
      values: kubeadm("timeouts", {
        controlPlaneComponentHealthCheck: "1h10m0.5s",
        tlsBootstrap: "500ms",
      }),
    },
    {
      merit: "patches of every type",
      values: kubeadm("patches", {
        "kube-apiserver+strategic.yaml": "spec: {}",
        "kubeletconfiguration0+merge.json": "{}",
        "etcd+json.yaml": "- { op: add, path: /a, value: b }",
        "kube-scheduler-a.yaml": "metadata: {}\n---\nspec: {}\n",
      }),
    },
  ],
};
