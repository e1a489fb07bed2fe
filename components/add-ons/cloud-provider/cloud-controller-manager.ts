import { Deployment } from "@pulumi/kubernetes/apps/v1";
import { ServiceAccount } from "@pulumi/kubernetes/core/v1";
import { RoleBinding } from "@pulumi/kubernetes/rbac/v1";
import * as pulumi from "@pulumi/pulumi";

import type { ApiServer } from "../../api-server";
import type { ProxySettings } from "../../settings/proxy";
import type { Settings } from "../../settings/settings";
import { cloudProviderImages } from "../../versions";
import { CloudConfig, cloudConfigSecret, proxyEnv } from "./cloud-config";
import {
  apiServerEnv,
  nodeSelector,
  replicas,
  spread,
  strategy,
  tolerations,
  withoutWaiting,
} from "../objects";
import { loginParts, type ServiceAccountLogin } from "../workload-identity";
import { clusterRights, rbac, subjectsOf } from "../cluster-rights";
import { RollOutTarget } from "../roll-out";

const name = "cloud-controller-manager";
const namespace = "kube-system";
const port = 10268;

export interface CloudControllerManagerArgs {
  readonly settings: Pick<Settings, "clusterName" | "controlPlaneCount" | "kubernetesVersion"> &
    ProxySettings;
  readonly apiServer: ApiServer;
  readonly cloudConfig: CloudConfig;
  /** Undefined where it logs in as its machine. */
  readonly login?: ServiceAccountLogin;
}

/**
 * The half of the cloud provider that changes Azure: load balancers for Services, and Nodes whose
 * machine is gone. It leaves pod ranges to kube-controller-manager, and sets no routes, since
 * VXLAN needs none.
 */
export class CloudControllerManager extends pulumi.ComponentResource {
  /** What to await once all machines have joined. */
  readonly targets: readonly RollOutTarget[];

  constructor(
    resourceName: string,
    args: CloudControllerManagerArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("zoned:index:CloudControllerManager", resourceName, {}, opts);
    const { settings, apiServer, cloudConfig } = args;
    const login = loginParts(args.login);
    const child = { parent: this, dependsOn: opts?.dependsOn };
    const labels = { "k8s-app": name };
    const metadata = { name, namespace, labels };

    const account = new ServiceAccount(`${resourceName}-account`, { metadata }, child);
    const rights = clusterRights(resourceName, metadata, rules, child);
    const reader = new RoleBinding(
      `${resourceName}-authentication-reader`,
      {
        metadata: { name: `${name}-authentication-reader`, namespace, labels },
        roleRef: {
          apiGroup: rbac,
          kind: "Role",
          name: "extension-apiserver-authentication-reader",
        },
        subjects: subjectsOf(metadata),
      },
      child,
    );

    const spec = {
      replicas: replicas(settings),
      selector: { matchLabels: labels },
      strategy,
      template: {
        metadata: { labels, annotations: { "zoned/cloud-config": cloudConfig.digest } },
        spec: {
          hostNetwork: true,
          nodeSelector,
          tolerations: [
            ...tolerations,
            // A machine is not ready while its pod network is not, and this one needs none.
            { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoSchedule" },
          ],
          affinity: {
            podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: apart(labels) },
          },
          topologySpreadConstraints: spread(labels),
          priorityClassName: "system-cluster-critical",
          serviceAccountName: name,
          containers: [
            {
              name,
              image: cloudProviderImages(settings.kubernetesVersion).controllerManager,
              command: [name],
              args: [
                "--cloud-provider=azure",
                `--cloud-config=/etc/azure/${cloudConfigSecret.key}`,
                `--cluster-name=${settings.clusterName}`,
                `--cluster-cidr=${settings.podCidr}`,
                // The node manager does this one's work on each machine.
                "--controllers=*,-cloud-node",
                "--allocate-node-cidrs=false",
                "--configure-cloud-routes=false",
                "--leader-elect=true",
                "--bind-address=127.0.0.1",
                `--secure-port=${port}`,
                "--v=2",
              ],
              env: [
                ...apiServerEnv(apiServer),
                ...proxyEnv(settings, apiServer.name),
                ...login.env,
              ],
              ports: [{ name: "https", containerPort: port, hostPort: port }],
              livenessProbe: {
                httpGet: { host: "127.0.0.1", path: "/healthz", port, scheme: "HTTPS" },
                initialDelaySeconds: 20,
                timeoutSeconds: 5,
              },
              // It answers before it has asked Azure anything, and ends when Azure does not honour
              // its rights yet. Longer than its leader's lease, for which it waits when it begins
              // again.
              readinessProbe: {
                httpGet: { host: "127.0.0.1", path: "/healthz", port, scheme: "HTTPS" },
                initialDelaySeconds: 30,
                timeoutSeconds: 5,
              },
              resources: {
                requests: { cpu: "100m", memory: "128Mi" },
                limits: { memory: "2Gi" },
              },
              volumeMounts: [
                { name: "cloud-config", mountPath: "/etc/azure", readOnly: true },
                { name: "certificates", mountPath: "/etc/ssl", readOnly: true },
                ...login.volumeMounts,
              ],
            },
          ],
          volumes: [
            {
              name: "cloud-config",
              // Upstream chooses the user of the image; a Secret's files are root's.
              secret: { secretName: cloudConfigSecret.name, defaultMode: 0o444 },
            },
            { name: "certificates", hostPath: { path: "/etc/ssl", type: "Directory" } },
            ...login.volumes,
          ],
        },
      },
    };
    new Deployment(
      `${resourceName}-deployment`,
      { metadata: withoutWaiting(metadata), spec },
      { ...child, dependsOn: [cloudConfig, account, ...rights, reader] },
    );
    this.targets = [{ kind: "Deployment", namespace, name, spec }];
    this.registerOutputs();
  }
}

const apart = (matchLabels: Record<string, string>) => [
  { labelSelector: { matchLabels }, topologyKey: "kubernetes.io/hostname" },
];

/** As upstream's, less the right to read every Secret: azure.json is mounted. */
const rules = [
  { apiGroups: [""], resources: ["events"], verbs: ["create", "patch", "update"] },
  { apiGroups: [""], resources: ["nodes"], verbs: ["*"] },
  { apiGroups: [""], resources: ["nodes/status"], verbs: ["patch"] },
  {
    apiGroups: [""],
    resources: ["services", "services/status"],
    verbs: ["list", "patch", "update", "watch"],
  },
  {
    apiGroups: [""],
    resources: ["serviceaccounts", "endpoints"],
    verbs: ["create", "get", "list", "update", "watch"],
  },
  { apiGroups: [""], resources: ["persistentvolumes"], verbs: ["get", "list", "update", "watch"] },
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create", "get", "update"] },
  {
    apiGroups: ["discovery.k8s.io"],
    resources: ["endpointslices"],
    verbs: ["get", "list", "watch"],
  },
];
