import { versions } from "../../../components/versions";
import type { Cases, Refused, Values } from "../stack";

const kubeadm = (name: string, value: unknown): Values => ({ kubeadm: { [name]: value } });

/** Without the suffix of the image, which makes it a later version. */
const etcdRelease = versions.etcd.split("-")[0];

const etcdOf = (image: string): string =>
  JSON.stringify({ spec: { containers: [{ name: "etcd", image }] } });

const owned: readonly [string, string, string, string][] = [
  ["apiServer", "service-cluster-ip-range", "10.0.0.0/16", "set serviceCidr"],
  ["apiServer", "advertise-address", "10.0.0.1", "kubeadm sets it"],
  ["apiServer", "tls-cert-file", "/my.crt", "kubeadm sets it"],
  ["controllerManager", "cluster-cidr", "10.0.0.0/16", "set podCidr"],
  ["controllerManager", "cluster-name", "mine", "set clusterName"],
  ["controllerManager", "service-cluster-ip-range", "10.0.0.0/16", "set serviceCidr"],
  ["controllerManager", "cloud-provider", "azure", "kubeadm sets it"],
  ["scheduler", "kubeconfig", "/my.conf", "kubeadm sets it"],
  ["etcd", "initial-cluster", "a=https://10.0.0.1:2380", "kubeadm sets it"],
  ["kubelet", "node-ip", "10.0.0.1", "kubeadm sets it"],
  [
    "kubelet",
    "provider-id",
    "azure:///subscriptions/1",
    "Azure's cloud provider gives each node its own",
  ],
  ["kubelet", "register-with-taints", "a=b:NoSchedule", "set taints of a pool"],
];

const newer = { "concurrent-disruption-syncs": "5" };

/** What the program, or the machines' scripts, would lose. */
const needed: readonly [string, string, unknown, string][] = [
  ["apiServer", "authorization-mode", "RBAC", "Node among the modes"],
  ["apiServer", "authorization-mode", "AlwaysAllow", "Node and RBAC among the modes"],
  ["apiServer", "authorization-mode", "Node", "RBAC among the modes"],
  ["apiServer", "authorization-mode", "Node,RBAC,AlwaysAllow", "it without AlwaysAllow"],
  ["apiServer", "enable-admission-plugins", "AlwaysPullImages,AlwaysDeny", "it without AlwaysDeny"],
  ["apiServer", "authorization-config", "/etc/authorization.yaml", "authorization-mode"],
  ["apiServer", "authentication-config", "/etc/authentication.yaml", "set entra"],
  ["apiServer", "anonymous-auth", true, "/livez, /readyz and /healthz alone"],
  [
    "apiServer",
    "disable-admission-plugins",
    "LimitRanger,NodeRestriction",
    "without NodeRestriction",
  ],
  ["apiServer", "disable-admission-plugins", "ServiceAccount", "it without ServiceAccount"],
  ["apiServer", "disable-admission-plugins", "Priority", "the last to be evicted"],
  ["apiServer", "disable-admission-plugins", "ValidatingAdmissionPolicy", "kured's token"],
  ["apiServer", "admission-control", "AlwaysPullImages", "set that"],
  ["apiServer", "enable-admission-plugins", "EventRateLimit", "admission-control-config-file too"],
  ["apiServer", "runtime-config", "api/all=false,api/beta=true", "it without api/all"],
  ["apiServer", "runtime-config", "apps/v1=false", "it without apps/v1"],
  ["apiServer", "tls-cipher-suites", "TLS_AES_128_GCM_SHA256", "the balancer's probe"],
  [
    ...(["apiServer", "tls-cipher-suites", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"] as const),
    "whose key is RSA",
  ],
  ["apiServer", "tls-cipher-suites", "TLS_NONE", "TLS_NONE is none"],
  ["apiServer", "tls-min-version", "1.2", "VersionTLS12"],
  ["apiServer", "service-account-signing-endpoint", "/run/signer.sock", "does not start with both"],
  ["apiServer", "kubelet-certificate-authority", "/my.crt", "not yours to set"],
  ["apiServer", "etcd-prefix", "/mine", "out of sight"],
  ["apiServer", "service-node-port-range", "6000-7000", "a range without 6443"],
  ["apiServer", "service-node-port-range", "20+50", "a range without 22"],
  ["apiServer", "enable-garbage-collector", false, "true, since what a removed Deployment"],
  ["apiServer", "endpoint-reconciler-type", "none", "lease"],
  ["apiServer", "version", "true", "ends at once"],
  ["controllerManager", "controllers", "*,-nodeipam", "it without -nodeipam"],
  ["controllerManager", "cidr-allocator-type", "CloudAllocator", "allocates no pod ranges"],
  ["controllerManager", "enable-garbage-collector", false, "true, since what a removed Deployment"],
  ["controllerManager", "leader-elect-resource-name", "mine", "expected kube-controller-manager"],
  ["controllerManager", "leader-elect-resource-namespace", "mine", "expected kube-system"],
  ["controllerManager", "secure-port", "0", "probe the default port"],
  ["controllerManager", "tls-cipher-suites", "TLS_AES_128_GCM_SHA256", "no server of HTTP/2"],
  [
    "controllerManager",
    "cluster-signing-kubelet-client-cert-file",
    "/my.crt",
    "does not start with both",
  ],
  ["controllerManager", "leader-elect-lease-duration", "5s", "above leader-elect-renew-deadline"],
  ["scheduler", "leader-elect-retry-period", "9s", "above 1.2 times"],
  ["scheduler", "secure-port", "0", "probe the default port"],
  ["scheduler", "write-config-to", "/tmp/config.yaml", "ends at once"],
  ["scheduler", "tls-cipher-suites", "TLS_AES_128_GCM_SHA256", "no server of HTTP/2"],
  ["etcd", "enable-grpc-gateway", false, "members are asked by it"],
  ["etcd", "listen-client-http-urls", "http://0.0.0.0:2390", "members are asked"],
  ["etcd", "listen-metrics-urls", "https://0.0.0.0:2381", "the machine asks there"],
  ["etcd", "config-file", "/etc/etcd.yaml", "passes over all its arguments"],
  ["etcd", "discovery-srv", "example.org", "does not start with both"],
  ["etcd", "client-cert-allowed-hostname", "mine", "has no host name"],
  ["etcd", "peer-cert-allowed-cn", "mine", "the name of its own machine"],
  ["etcd", "peer-cert-allowed-hostname", "mine", "the name of its own machine"],
  ["etcd", "wal-dir", "/wal", "only the data directory"],
  ["etcd", "auto-compaction-retention", "often", "a duration such as 30m"],
  ["etcd", "cipher-suites", "TLS_NONE", "TLS_NONE is none"],
  ["kubelet", "address", "127.0.0.1", "expected 0.0.0.0"],
  ["kubelet", "port", 10251, "expected 10250"],
  ["kubelet", "enable-controller-attach-detach", false, "true, since disks are attached"],
  ["kubelet", "enable-debugging-handlers", false, "true, since logs and exec"],
  ["kubelet", "enable-server", false, "true, since logs and exec"],
  ["kubelet", "register-node", false, "true, since a machine has to become a Node"],
  ["kubelet", "root-dir", "/data/kubelet", "/var/lib/kubelet"],
  ["kubelet", "rotate-server-certificates", true, "false, since this program"],
  ["kubelet", "tls-cipher-suites", "TLS_AES_128_GCM_SHA256", "no server of HTTP/2"],
  ["kubelet", "anonymous-auth", true, "not yours to set"],
  ["kubelet", "authorization-mode", "AlwaysAllow", "not yours to set"],
  ["kubelet", "cgroup-driver", "cgroupfs", "not yours to set"],
  [
    "kubelet",
    "feature-gates",
    "GracefulNodeShutdown=false,GracefulNodeShutdownBasedOnPodPriority=false,WindowsGracefulNodeShutdown=false",
    "GracefulNodeShutdown=true",
  ],
  ["kubelet", "feature-gates", "AllBeta=false", "GracefulNodeShutdown=true"],
  ["kubelet", "cgroups-per-qos", "false", "true, since"],
  ["kubelet", "container-log-max-files", "1", "a number from 2"],
  ["kubelet", "cpu-cfs-quota-period", "2s", "from 1ms to 1s"],
  ["kubelet", "cpu-manager-policy", "static", "cpu in system-reserved too"],
  ["kubelet", "enforce-node-allocatable", "pods,kube-reserved", "kube-reserved-cgroup too"],
  ["kubelet", "memory-manager-policy", "Static", "reserved-memory too"],
  ["kubelet", "node-labels", "topology.kubernetes.io/zone=1", "Azure's cloud provider set it"],
];

export const kubeadmCases: Cases = {
  refused: [
    ...owned.map(([component, name, value, says]): Refused => [
      kubeadm(`${component}ExtraArgs`, { [name]: value }),
      `kubeadm.${component}ExtraArgs.${name} is not yours to set, expected it left out, since all parts of a cluster have to agree on it: ${says}`,
    ]),
    ...[
      ["apiServer", "max-request-inflight", "did you mean max-requests-inflight?"],
      ["controllerManager", "node-monitor-perio", "did you mean node-monitor-period?"],
      ["scheduler", "profile", "is no argument of that component"],
      ["kubelet", "constructor", "is no argument of that component"],
      ["kubelet", "pod-infra-container-image", "one that kubelet 1.37 has"],
      ["kubelet", "max-podz", "did you mean max-pods?"],
      ["etcd", "quota-backend-byte", "did you mean quota-backend-bytes?"],
      ["etcd", "experimental-corrupt-check-time", "its name is corrupt-check-time now"],
      ["etcd", "experimental-initial-corrupt-check", "gate InitialCorruptCheck: set feature-gates"],
      ["etcd", "discovery", "etcd has no v2 store"],
      [
        "kubelet",
        "global-housekeeping-interval",
        "nothing has taken its place, since it was a flag",
      ],
      ["controllerManager", "concurrent-service-syncs", "has done nothing from 1.31 on"],
    ].map(([component, name, says]): Refused => [
      kubeadm(`${component}ExtraArgs`, { [String(name)]: "1" }),
      String(says),
    ]),
    ...[
      ["anonymous-auth", false],
      ["anonymous-auth", "False"],
      ["tls-min-version", "VersionTLS13"],
    ].map(([name, value]): Refused => [
      kubeadm("apiServerExtraArgs", { [String(name)]: value }),
      "the balancer's probe is anonymous and speaks TLS 1.2",
    ]),
    [
      kubeadm("apiServerExtraArgs", { "encryption-provider-config-automatic-reload": false }),
      "kubeadm.apiServerExtraArgs.encryption-provider-config-automatic-reload is not yours to set, expected it left out",
    ],
    ...needed.map(([component, name, value, says]): Refused => [
      kubeadm(`${component}ExtraArgs`, { [name]: value }),
      says,
    ]),
    [
      kubeadm("kubeletExtraArgs", { "feature-gates": "AllBetas=true,AllAlphas=true" }),
      "AllBetas is none, did you mean AllBeta?; AllAlphas is none, did you mean AllAlpha?",
    ],
    [
      kubeadm("apiServerExtraArgs", { "enable-admission-plugins": "AlwaysPullImage" }),
      "AlwaysPullImage is none, did you mean AlwaysPullImages?",
    ],
    ...[500, 0, 9].map((pods): Refused => [
      kubeadm("kubeletExtraArgs", { "max-pods": pods }),
      "10 to 253, from what the cluster's own pods need to the addresses in a node's /24 of podCidr",
    ]),
    [kubeadm("kubeletExtraArgs", { "node-labels": "a=b, c=d" }), "no spaces"],
    [
      { kubernetesVersion: "1.36.3", ...kubeadm("controllerManagerExtraArgs", newer) },
      "one that kube-controller-manager 1.36 has",
    ],
    [kubeadm("apiserverExtraArgs", { v: "2" }), "kubeadm.apiserverExtraArgs is not a known name"],
    [kubeadm("etcdExtraArgs", ["--quota=1"]), "kubeadm.etcdExtraArgs is"],
    [kubeadm("kubeletExtraArgs", { v: [1] }), "kubeadm.kubeletExtraArgs.v is [1]"],
    ...["apiServer", "controllerManager", "scheduler", "etcd", "kubelet"].map(
      (component): Refused => [
        kubeadm(`${component}ExtraArgs`, { "--v": "2" }),
        `kubeadm.${component}ExtraArgs.--v is not the name of an argument`,
      ],
    ),
    [kubeadm("ignorePreflightErrors", "NumCPU"), "kubeadm.ignorePreflightErrors is"],
    [
      kubeadm("ignorePreflightErrors", ["NumCPU", "All"]),
      'kubeadm.ignorePreflightErrors[1] is "All" beside NumCPU, expected',
    ],
    [kubeadm("timeouts", { discover: "5m" }), "did you mean discovery?"],
    [kubeadm("timeouts", { discovery: 300 }), 'kubeadm.timeouts.discovery is "300"'],
    [kubeadm("timeouts", { discovery: "1d" }), "a duration such as"],
    [
      kubeadm("patches", {
        "etcd.yaml": `#${"x".repeat(15_000)}\n{}`,
        "kube-scheduler.yaml": `#${"x".repeat(17_000)}\n{}`,
      }),
      "is 32008 characters in all, 17004 of them in kube-scheduler.yaml",
    ],
    [
      kubeadm("patches", { "apiserver.yaml": "{}" }),
      "is not a name that kubeadm takes a patch from",
    ],
    [kubeadm("patches", { "etcd+json6902.yaml": "[]" }), "is not a name"],
    [kubeadm("patches", { "etcd.txt": "{}" }), "is not a name"],
    [kubeadm("patches", { "etcd/../../x.yaml": "{}" }), "is not a name"],
    [kubeadm("patches", { "etcd.yaml": "a: [" }), "an object in YAML or JSON"],
    [kubeadm("patches", { "etcd.yaml": "" }), "an object in YAML or JSON"],
    ...["a: 1\n---\nb: [\n", "a: 1\n---\n- 2\n", "a: 1\n---\nnull\n", "text", "a: *x"].map(
      (text): Refused => [kubeadm("patches", { "etcd.yaml": text }), "an object in YAML or JSON"],
    ),
    [
      kubeadm("patches", { "etcd.yaml": etcdOf("registry.k8s.io/etcd:99.0.0-0") }),
      `has etcd run registry.k8s.io/etcd:99.0.0-0, expected no etcd newer than the ${versions.etcd}`,
    ],
    [
      kubeadm("patches", { "etcd+merge.json": etcdOf(`here/etcd:v${etcdRelease}@sha256:0123`) }),
      `has etcd run here/etcd:v${etcdRelease}@sha256:0123`,
    ],
    [
      {
        kubernetesVersion: "1.36.3",
        ...kubeadm("patches", {
          "etcd+json.yaml": `- { op: replace, path: /spec/containers/0/image, value: "etcd:${versions.etcd}" }`,
        }),
      },
      "of Kubernetes 1.36.3",
    ],
    ...[
      ["kubeletconfiguration.yaml", "maxPods: 254"],
      ["kubeletconfiguration+json.yaml", "- { op: add, path: /maxPods, value: 254 }"],
    ].map(([file = "", text]): Refused => [
      kubeadm("patches", { [file]: text }),
      "sets maxPods to 254, expected 10 to 253",
    ]),
    [kubeadm("patches", { "etcd+json.yaml": "op: add" }), "a list of JSON patch operations"],
    // YAML takes the wildcard for an alias.
    [
      kubeadm("patches", {
        "kube-apiserver+json.yaml":
          "- { op: add, path: /spec/containers/0/command/-, value: *.example.com }",
      }),
      "a list of JSON patch operations",
    ],
    // Aliases without end.
    [
      kubeadm("patches", {
        "etcd.yaml": `a: &a [x]\nb: &b [${"*a,".repeat(11)}]\nc: [${"*b,".repeat(11)}]`,
      }),
      "an object in YAML or JSON",
    ],
  ],
  accepted: [
    ["an argument of this version", kubeadm("controllerManagerExtraArgs", newer)],
    [
      "ports of Services beside the machines' own",
      kubeadm("apiServerExtraArgs", { "service-node-port-range": "6444-10249" }),
    ],
    [
      "stable APIs without all others",
      kubeadm("apiServerExtraArgs", { "runtime-config": "api/all=false,api/ga=true" }),
    ],
    [
      "arguments",
      kubeadm("apiServerExtraArgs", { "max-requests-inflight": 800, profiling: false }),
    ],
    [
      "what the balancer's probe can live with",
      kubeadm("apiServerExtraArgs", { "tls-min-version": "VersionTLS12" }),
    ],
    [
      "keys of the operator's own",
      kubeadm("apiServerExtraArgs", {
        "encryption-provider-config": "/etc/kubernetes/pki/kms.yaml",
        "encryption-provider-config-automatic-reload": false,
      }),
    ],
    [
      "another component's TLS 1.3",
      kubeadm("schedulerExtraArgs", { "tls-min-version": "VersionTLS13" }),
    ],
    [
      "the Lease of the controller manager as it has to be",
      kubeadm("controllerManagerExtraArgs", {
        "enable-garbage-collector": true,
        "leader-elect-resource-name": "kube-controller-manager",
        "leader-elect-resource-namespace": "kube-system",
      }),
    ],
    [
      "switches of the kubelet as they have to be",
      kubeadm("kubeletExtraArgs", {
        "enable-controller-attach-detach": true,
        "enable-debugging-handlers": true,
        "enable-server": true,
        "register-node": true,
        "rotate-server-certificates": false,
      }),
    ],
    ["all checks", kubeadm("ignorePreflightErrors", ["all"])],
    [
      "every time-out in use",
      kubeadm("timeouts", {
        controlPlaneComponentHealthCheck: "1h10m0.5s",
        tlsBootstrap: "500ms",
      }),
    ],
    [
      "patches of every type",
      kubeadm("patches", {
        "kube-apiserver+strategic.yaml": "spec: {}",
        "kubeletconfiguration0+merge.json": "{}",
        "etcd+json.yaml": "- { op: add, path: /a, value: b }",
        "kube-scheduler-a.yaml": "metadata: {}\n---\nspec: {}\n",
      }),
    ],
    [
      "a patch to as many pods as a node has addresses for",
      kubeadm("patches", { "kubeletconfiguration.yaml": "maxPods: 253" }),
    ],
    [
      "one to the kubelet's own number",
      kubeadm("patches", { "kubeletconfiguration.yaml": "maxPods: 0" }),
    ],
    [
      "one to more, in a network of one's own",
      { cni: "none", ...kubeadm("patches", { "kubeletconfiguration.yaml": "maxPods: 500" }) },
    ],
    [
      "patches to etcd's own release from elsewhere, to an older one, and of what runs beside it",
      kubeadm("patches", {
        "etcd0.yaml": etcdOf(`registry.example:5000/etcd:${versions.etcd}`),
        "etcd1.yaml": etcdOf("registry.k8s.io/etcd:3.0.0-0"),
        "etcd2.yaml":
          "spec: { containers: [{ name: beside, image: 'beside:9.9.9' }, { name: etcd }] }",
        "etcd3+json.yaml": "[null, { op: add, path: /spec/hostNetwork, value: true }]",
      }),
    ],
  ],
};
