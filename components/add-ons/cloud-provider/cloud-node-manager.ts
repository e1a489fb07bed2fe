import { DaemonSet } from "@pulumi/kubernetes/apps/v1";
import { ServiceAccount } from "@pulumi/kubernetes/core/v1";
import * as pulumi from "@pulumi/pulumi";

import type { ApiServer } from "../../api-server";
import type { Settings } from "../../settings/settings";
import { cloudProviderImages } from "../../versions";
import { clusterRights } from "../cluster-rights";
import { apiServerEnv, withoutWaiting } from "../objects";
import { RollOutTarget } from "../roll-out";

const name = "cloud-node-manager";
const namespace = "kube-system";

export interface CloudNodeManagerArgs {
  readonly settings: Pick<Settings, "kubernetesVersion">;
  readonly apiServer: ApiServer;
}

/**
 * The half of the cloud provider that runs on every machine: it asks the machine's own metadata
 * service for provider id, addresses, zone and size, and takes off the taint with which every
 * kubelet starts.
 *
 * Applied without waiting, as the pod network is, and for the same reason.
 */
export class CloudNodeManager extends pulumi.ComponentResource {
  /** What to await once there are machines for it to run on. */
  readonly targets: readonly RollOutTarget[];

  constructor(
    resourceName: string,
    args: CloudNodeManagerArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("zoned:index:CloudNodeManager", resourceName, {}, opts);
    const { settings, apiServer } = args;
    const child = { parent: this, dependsOn: opts?.dependsOn };
    const labels = { "k8s-app": name };
    const metadata = { name, namespace, labels };

    const account = new ServiceAccount(`${resourceName}-account`, { metadata }, child);
    const rights = clusterRights(
      resourceName,
      metadata,
      [
        {
          apiGroups: [""],
          resources: ["nodes"],
          verbs: ["get", "list", "patch", "update", "watch"],
        },
        { apiGroups: [""], resources: ["nodes/status"], verbs: ["patch"] },
      ],
      child,
    );

    const spec = {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          // It runs before there is a pod network, and knows its machine by the host's name.
          hostNetwork: true,
          nodeSelector: { "kubernetes.io/os": "linux" },
          priorityClassName: "system-node-critical",
          serviceAccountName: name,
          tolerations: [{ operator: "Exists" }],
          containers: [
            {
              name,
              image: cloudProviderImages(settings.kubernetesVersion).nodeManager,
              command: [name],
              args: [
                "--node-name=$(NODE_NAME)",
                "--use-instance-metadata=true",
                // The pods' packets travel in VXLAN: there are no routes to wait for.
                "--wait-routes=false",
                "--v=2",
              ],
              env: [
                { name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
                ...apiServerEnv(apiServer),
              ],
              resources: {
                requests: { cpu: "50m", memory: "50Mi" },
                limits: { memory: "512Mi" },
              },
            },
          ],
        },
      },
    };
    new DaemonSet(
      `${resourceName}-daemon-set`,
      { metadata: withoutWaiting(metadata), spec },
      { ...child, dependsOn: [account, ...rights] },
    );
    this.targets = [{ kind: "DaemonSet", namespace, name, spec }];
    this.registerOutputs();
  }
}
