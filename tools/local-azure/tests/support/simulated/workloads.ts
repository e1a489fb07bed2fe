/** Objects that the tests of this folder create, each with the path of its collection. */
type Objects = readonly (readonly [string, object])[];

const namespace = "kube-system";
const rbac = "rbac.authorization.k8s.io";
const pause = "registry.k8s.io/pause:3.10";

const roleFor = (name: string, subject: object, rules: readonly object[]): Objects => [
  [
    `/apis/${rbac}/v1/clusterroles`,
    { apiVersion: `${rbac}/v1`, kind: "ClusterRole", metadata: { name }, rules },
  ],
  [
    `/apis/${rbac}/v1/clusterrolebindings`,
    {
      apiVersion: `${rbac}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name },
      roleRef: { apiGroup: rbac, kind: "ClusterRole", name },
      subjects: [subject],
    },
  ],
];

const account = (name: string): Objects => [
  [
    `/api/v1/namespaces/${namespace}/serviceaccounts`,
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
  ],
];

const controller = (kind: "DaemonSet" | "Deployment", name: string, podSpec: object): Objects => [
  [
    `/apis/apps/v1/namespaces/${namespace}/${kind.toLowerCase()}s`,
    {
      apiVersion: "apps/v1",
      kind,
      metadata: { name, namespace },
      spec: {
        selector: { matchLabels: { app: name } },
        template: { metadata: { labels: { app: name } }, spec: podSpec },
        ...(kind === "Deployment" && { replicas: 1 }),
      },
    },
  ],
];

const everywhere = { hostNetwork: true, tolerations: [{ operator: "Exists" }] };

export const cniDaemonSet = controller("DaemonSet", "net", {
  ...everywhere,
  containers: [{ name: "net", image: pause }],
  volumes: [{ name: "cni", hostPath: { path: "/etc/cni/net.d" } }],
});

export const nodeManager: Objects = [
  ...account("cnm"),
  ...roleFor("cnm", { kind: "ServiceAccount", name: "cnm", namespace }, [
    { apiGroups: [""], resources: ["nodes"], verbs: ["get", "update"] },
    { apiGroups: [""], resources: ["nodes/status"], verbs: ["patch"] },
  ]),
  ...controller("DaemonSet", "cnm", {
    ...everywhere,
    serviceAccountName: "cnm",
    containers: [{ name: "cnm", image: "example.org/azure-cloud-node-manager:v1" }],
  }),
];

export const cloudControllerManager: Objects = [
  ...account("ccm"),
  ...roleFor("ccm", { kind: "ServiceAccount", name: "ccm", namespace }, [
    { apiGroups: [""], resources: ["nodes"], verbs: ["delete"] },
  ]),
  [
    `/api/v1/namespaces/${namespace}/secrets`,
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "azure", namespace },
      stringData: { "azure.json": "{}" },
    },
  ],
  ...controller("Deployment", "ccm", {
    ...everywhere,
    serviceAccountName: "ccm",
    nodeName: "demo-cp-1",
    containers: [
      {
        name: "ccm",
        image: "example.org/azure-cloud-controller-manager:v1",
        args: ["--controllers=*,-cloud-node"],
      },
    ],
    volumes: [{ name: "cloud-config", secret: { secretName: "azure" } }],
  }),
];

/** A machine's own bootstrap token, with the right to remove the Node of its predecessor. */
export function tokenOf(machine: string): { token: string; objects: Objects } {
  const id = `t${machine.replace(/[^a-z0-9]/g, "").slice(-5)}`;
  const secret = "0123456789abcdef";
  const group = `system:bootstrappers:zoned:${machine}`;
  const data = {
    "token-id": id,
    "token-secret": secret,
    "usage-bootstrap-authentication": "true",
    "auth-extra-groups": `system:bootstrappers:kubeadm:default-node-token,${group}`,
  };
  return {
    token: `${id}.${secret}`,
    objects: [
      [
        `/api/v1/namespaces/${namespace}/secrets`,
        {
          apiVersion: "v1",
          kind: "Secret",
          type: "bootstrap.kubernetes.io/token",
          metadata: { name: `bootstrap-token-${id}`, namespace },
          stringData: data,
        },
      ],
      ...roleFor(`zoned:${machine}`, { apiGroup: rbac, kind: "Group", name: group }, [
        {
          apiGroups: [""],
          resources: ["nodes"],
          resourceNames: [machine],
          verbs: ["get", "delete"],
        },
      ]),
    ],
  };
}
