import { APIService } from "@pulumi/kubernetes/apiregistration/v1";
import { Deployment } from "@pulumi/kubernetes/apps/v1";
import { Secret, Service, ServiceAccount } from "@pulumi/kubernetes/core/v1";
import { PodDisruptionBudget } from "@pulumi/kubernetes/policy/v1";
import { ClusterRole, ClusterRoleBinding, RoleBinding } from "@pulumi/kubernetes/rbac/v1";
import * as pulumi from "@pulumi/pulumi";

import { type Certificates, servingCertificate } from "../certificates";
import { machinesForAddOns } from "../settings/topology";
import { metricsServerImage } from "../versions";
import { clusterRights, rbac, subjectsOf } from "./cluster-rights";
import { spread, tolerations, unreadyMayGo, withoutWaiting } from "./objects";
import { RollOut, RollOutTarget } from "./roll-out";

const name = "metrics-server";
const namespace = "kube-system";
const port = 10250;
const group = "metrics.k8s.io";
const version = "v1beta1";
const certificateSecret = `${name}-certificate`;
const certificateFolder = "/etc/metrics-server";

/** The cluster's CA, as every pod with a service account has it: kubelets' certificates are of it. */
const clusterAuthority = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

export interface MetricsServerArgs {
  readonly settings: Parameters<typeof machinesForAddOns>[0];
  readonly certificates: Pick<Certificates, "cluster">;
  readonly initialization: { readonly id: string };
  /** Secret. */
  readonly kubeconfig: pulumi.Input<string>;
}

/**
 * What `kubectl top` and the horizontal pod autoscaler ask.
 *
 * Who is who is verified on both sides: kubelets and the API that this adds have certificates of the
 * cluster's CA. The API is registered when something answers behind it: as long as a registered one
 * does not answer, Kubernetes deletes no namespace.
 *
 * @see https://github.com/kubernetes-sigs/metrics-server#requirements
 */
export class MetricsServer extends pulumi.ComponentResource {
  /** What it awaits by itself. */
  readonly targets: readonly RollOutTarget[];

  constructor(
    resourceName: string,
    args: MetricsServerArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("zoned:index:MetricsServer", resourceName, {}, opts);
    const { settings, certificates, initialization, kubeconfig } = args;
    const child = { parent: this, dependsOn: opts?.dependsOn };
    const labels = { "k8s-app": name };
    const metadata = { name, namespace, labels };
    const unawaited = withoutWaiting(metadata);
    const subjects = subjectsOf(metadata);
    const roleOf = (role: string, kind = "ClusterRole") => ({ apiGroup: rbac, kind, name: role });

    const account = new ServiceAccount(`${resourceName}-account`, { metadata }, child);
    const rights = clusterRights(
      resourceName,
      metadata,
      [
        { apiGroups: [""], resources: ["nodes/metrics"], verbs: ["get"] },
        { apiGroups: [""], resources: ["pods", "nodes"], verbs: ["get", "list", "watch"] },
      ],
      child,
      `system:${name}`,
    );
    // It asks the API server who may ask it, and as whom the API server itself asks.
    const delegator = new ClusterRoleBinding(
      `${resourceName}-auth-delegator`,
      {
        metadata: { name: `${name}:system:auth-delegator`, labels },
        roleRef: roleOf("system:auth-delegator"),
        subjects,
      },
      child,
    );
    const reader = new RoleBinding(
      `${resourceName}-auth-reader`,
      {
        metadata: { name: `${name}-auth-reader`, namespace, labels },
        roleRef: roleOf("extension-apiserver-authentication-reader", "Role"),
        subjects,
      },
      child,
    );
    new ClusterRole(
      `${resourceName}-aggregated-reader`,
      {
        metadata: {
          name: "system:aggregated-metrics-reader",
          labels: {
            ...labels,
            ...Object.fromEntries(
              ["view", "edit", "admin"].map((to) => [`${rbac}/aggregate-to-${to}`, "true"]),
            ),
          },
        },
        rules: [
          { apiGroups: [group], resources: ["pods", "nodes"], verbs: ["get", "list", "watch"] },
        ],
      },
      child,
    );
    // Its pods read another one by themselves.
    const { certificate, key } = servingCertificate(
      {
        key: `${resourceName}-key`,
        request: `${resourceName}-request`,
        certificate: `${resourceName}-serving`,
      },
      { name, dnsNames: [`${name}.${namespace}.svc`] },
      certificates,
      { parent: this },
    );
    const secret = new Secret(
      `${resourceName}-certificate`,
      {
        metadata: { name: certificateSecret, namespace, labels },
        type: "kubernetes.io/tls",
        data: { "tls.crt": certificate.apply(base64), "tls.key": key.apply(base64) },
      },
      child,
    );
    const service = new Service(
      `${resourceName}-service`,
      {
        // Its Deployment is waited for.
        metadata: unawaited,
        spec: {
          selector: labels,
          ports: [{ name: "https", port: 443, targetPort: "https", appProtocol: "https" }],
        },
      },
      child,
    );
    new PodDisruptionBudget(
      `${resourceName}-budget`,
      {
        metadata,
        spec: {
          maxUnavailable: 1,
          selector: { matchLabels: labels },
          unhealthyPodEvictionPolicy: unreadyMayGo,
        },
      },
      child,
    );

    const spec = {
      // The budget would hold for ever a machine that has both and is drained.
      replicas: Math.min(2, machinesForAddOns(settings).length),
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: podSpec(labels) },
    };
    const deployment = new Deployment(
      `${resourceName}-deployment`,
      { metadata: unawaited, spec },
      { ...child, dependsOn: [account, ...rights, delegator, reader, secret] },
    );
    this.targets = [{ kind: "Deployment", namespace, name, spec }];
    const rollOut = new RollOut(
      `${resourceName}-roll-out`,
      { targets: this.targets, runs: [initialization.id], kubeconfig },
      { ...child, dependsOn: [deployment] },
    );
    new APIService(
      `${resourceName}-api`,
      {
        metadata: { name: `${version}.${group}`, labels },
        spec: {
          group,
          version,
          service: { name, namespace, port: 443 },
          caBundle: certificates.cluster.trusted.apply(base64),
          groupPriorityMinimum: 100,
          versionPriority: 100,
        },
      },
      { ...child, dependsOn: [service, rollOut] },
    );
    this.registerOutputs();
  }
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

const podSpec = (labels: Record<string, string>) => ({
  serviceAccountName: name,
  nodeSelector: { "kubernetes.io/os": "linux" },
  tolerations,
  topologySpreadConstraints: spread(labels),
  priorityClassName: "system-cluster-critical",
  securityContext: {
    runAsNonRoot: true,
    runAsUser: 1000,
    runAsGroup: 1000,
    fsGroup: 1000,
    seccompProfile: { type: "RuntimeDefault" },
  },
  containers: [
    {
      name,
      image: metricsServerImage,
      args: [
        `--secure-port=${port}`,
        `--tls-cert-file=${certificateFolder}/tls.crt`,
        `--tls-private-key-file=${certificateFolder}/tls.key`,
        `--kubelet-certificate-authority=${clusterAuthority}`,
        "--kubelet-preferred-address-types=InternalIP",
        "--kubelet-use-node-status-port",
        "--metric-resolution=15s",
      ],
      ports: [{ name: "https", containerPort: port }],
      // Ready once it has measured twice.
      readinessProbe: { httpGet: { path: "/readyz", port: "https", scheme: "HTTPS" } },
      livenessProbe: {
        httpGet: { path: "/livez", port: "https", scheme: "HTTPS" },
        initialDelaySeconds: 20,
      },
      // What its makers name for up to a hundred nodes.
      resources: { requests: { cpu: "100m", memory: "200Mi" } },
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      },
      volumeMounts: [{ name: "certificate", mountPath: certificateFolder, readOnly: true }],
    },
  ],
  volumes: [{ name: "certificate", secret: { secretName: certificateSecret, defaultMode: 0o440 } }],
});
