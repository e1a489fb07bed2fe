import { createHash } from "node:crypto";

import { DaemonSetPatch } from "@pulumi/kubernetes/apps/v1";
import { ConfigMap, ConfigMapPatch } from "@pulumi/kubernetes/core/v1";
import * as pulumi from "@pulumi/pulumi";
import { stringify } from "yaml";

import type { ApiServer } from "../api-server";
import {
  kubeProxyConfiguration,
  kubeProxyKubeconfig,
  cleanupScript,
  readinessScript,
} from "../kubeadm/kube-proxy";
import { serverOf } from "../api-server";
import type { Settings } from "../settings/settings";
import { withoutWaiting } from "./objects";
import { RollOut, RollOutTarget } from "./roll-out";

const name = "kube-proxy";
const namespace = "kube-system";

/**
 * In a mode that stays, rules are there from before; a kube-proxy that cannot run ends within these
 * seconds.
 */
const minReadySeconds = 5;

/**
 * Ten minutes for the first rules, of which those of 5,000 Services took nearly five in iptables
 * mode.
 */
const patience = { timeoutSeconds: 60, failureThreshold: 10 };

/**
 * kubeadm asks for nothing, and so kube-proxy would come after all other pods on a busy node, and
 * Services with it.
 */
const resources = { requests: { cpu: "100m" } };

export interface KubeProxyArgs {
  readonly settings: Pick<
    Settings,
    "podCidr" | "proxyMode" | "proxyScheduler" | "kubeProxy" | "kubernetesVersion"
  >;
  readonly initialization: { readonly id: string };
  readonly apiServer: ApiServer;
  /** Secret. */
  readonly kubeconfig: pulumi.Input<string>;
}

/**
 * How kube-proxy is configured, from the initialization on: a change is a rolling one, node by node.
 *
 * Each configuration is a ConfigMap of its own, for kube-proxy ends as soon as the one that it has
 * mounted changes, on all nodes within a minute. kubeadm's own, which nothing mounts any more,
 * follows at the end, for `kubeadm upgrade` and other readers.
 */
export class KubeProxy extends pulumi.ComponentResource {
  /** What to await once all machines have joined. */
  readonly targets: readonly RollOutTarget[];

  constructor(resourceName: string, args: KubeProxyArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:KubeProxy", resourceName, {}, opts);
    const { settings, initialization, apiServer, kubeconfig } = args;
    const child = { parent: this, dependsOn: opts?.dependsOn };
    const annotations = { "pulumi.com/patchForce": "true" };

    const configuration = stringify(kubeProxyConfiguration(settings), { lineWidth: 0 });
    const data = {
      "config.conf": configuration,
      "kubeconfig.conf": stringify(kubeProxyKubeconfig(serverOf(apiServer)), { lineWidth: 0 }),
    };
    const digest = createHash("sha256").update(JSON.stringify(data)).digest("hex").slice(0, 10);
    const configMap = new ConfigMap(
      `${resourceName}-config`,
      {
        metadata: { name: `${name}-${digest}`, namespace, labels: { "k8s-app": name } },
        immutable: true,
        data,
      },
      // The engine would delete it by its name at the end, also where nodes that were not Ready still mount it,
      // and where a roll-out has failed and the update that takes the change back uses it again.
      { ...child, retainOnDelete: true },
    );
    const spec = {
      minReadySeconds,
      updateStrategy: {
        type: "RollingUpdate",
        rollingUpdate: { maxUnavailable: 1, maxSurge: 0 },
      },
      template: {
        spec: {
          volumes: [{ name, configMap: { name: `${name}-${digest}` } }],
          containers: [
            {
              name,
              // kubeadm's upgrade leaves kube-proxy alone: it would undo what is patched here.
              image: imageOf(settings),
              resources,
              startupProbe: {
                exec: { command: ["sh", "-c", readinessScript(settings.proxyMode)] },
                ...patience,
              },
            },
          ],
          initContainers: [cleanUp(settings)],
        },
      },
    };
    const daemonSet = new DaemonSetPatch(
      `${resourceName}-daemon-set`,
      { metadata: withoutWaiting({ name, namespace, annotations }), spec },
      { ...child, dependsOn: [configMap] },
    );
    this.targets = [{ kind: "DaemonSet", namespace, name, spec }];
    const rollOut = new RollOut(
      `${resourceName}-roll-out`,
      { targets: this.targets, runs: [initialization.id], kubeconfig },
      { ...child, dependsOn: [daemonSet] },
    );
    new ConfigMapPatch(
      `${resourceName}-kubeadm-config`,
      { metadata: { name, namespace, annotations }, data: { "config.conf": configuration } },
      { ...child, dependsOn: [rollOut] },
    );
    this.registerOutputs();
  }
}

const imageOf = ({ kubernetesVersion }: KubeProxyArgs["settings"]): string =>
  `registry.k8s.io/kube-proxy:v${kubernetesVersion}`;

/** Runs on each node before kube-proxy starts there. */
const cleanUp = (settings: KubeProxyArgs["settings"]) => ({
  name: "clean-up-other-modes",
  image: imageOf(settings),
  command: ["sh", "-c", cleanupScript(settings.proxyMode)],
  env: [{ name: "PATH", value: "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" }],
  securityContext: { privileged: true },
  volumeMounts: [
    { name: "xtables-lock", mountPath: "/run/xtables.lock" },
    { name: "lib-modules", mountPath: "/lib/modules", readOnly: true },
  ],
});
