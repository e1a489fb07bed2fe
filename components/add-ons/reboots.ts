import { DaemonSet } from "@pulumi/kubernetes/apps/v1";
import { ServiceAccount } from "@pulumi/kubernetes/core/v1";
import { Role, RoleBinding } from "@pulumi/kubernetes/rbac/v1";
import * as pulumi from "@pulumi/pulumi";

import type { Reboots as Window, Settings } from "../settings/settings";
import { kuredImage } from "../versions";
import { clusterRights, deniedBy, rbac, subjectsOf } from "./cluster-rights";
import { withoutWaiting } from "./objects";
import { RollOutTarget } from "./roll-out";

const name = "kured";
const namespace = "kube-system";

/** From one look to the next. */
const periodMinutes = 10;

/**
 * Longer than a machine takes to start, also where somebody has to help: kured uncordons only what holds its lock.
 * A lock whose machine has gone ends so long after its drain: before the next day's window, unless that is most of a day.
 */
const bootMinutes = 12 * 60;

/**
 * Run among the files of the machine itself, by what its bootstrap step leaves there, and on its own
 * network, where etcd listens.
 */
const onMachine = (does: string) => `nsenter --target 1 --net bash /opt/zoned/bootstrap.sh ${does}`;

/**
 * Whether the machine is to be rebooted, and may be: no other one is down for an event of Azure or an
 * update, and of control planes all others are well, as before one renews its certificates. kured asks
 * this every minute, for its metrics, so that it changes nothing; `rebootCommand` takes the machine's turn.
 */
export const sentinelScript = `test -e /run/reboot-required && ${onMachine("may_reboot")}`;

/** Waits for its turn. Where that does not come, kured lets pods on the machine again. */
const rebootCommand = onMachine("reboot_in_turn");

/**
 * kured writes its lock by an update of its whole DaemonSet. Its token is on every machine, so that who is
 * root on one would otherwise have the DaemonSet run anything on all of them, as root.
 */
const lockPolicy = {
  failurePolicy: "Fail",
  matchConstraints: {
    resourceRules: [
      {
        apiGroups: ["apps"],
        apiVersions: ["v1"],
        operations: ["UPDATE"],
        resources: ["daemonsets"],
      },
    ],
  },
  matchConditions: [
    {
      name: "is-kured",
      expression: `request.userInfo.username == 'system:serviceaccount:${namespace}:${name}'`,
    },
  ],
  validations: [
    {
      expression: "object.spec == oldObject.spec",
      message: "kured may change annotations of its DaemonSet, and nothing that runs",
    },
  ],
};

export interface RebootsArgs {
  readonly settings: Pick<Settings, "drainMinutes">;
  readonly window: Window;
}

/**
 * Reboots machines whose operating system asks for it, in a window and one at a time: kured drains
 * each before and uncordons it after. The lock is an annotation of its DaemonSet.
 *
 * @see https://kured.dev/docs/configuration/
 */
export class Reboots extends pulumi.ComponentResource {
  /** What to await once all machines have joined. */
  readonly targets: readonly RollOutTarget[];

  constructor(resourceName: string, args: RebootsArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Reboots", resourceName, {}, opts);
    const child = { parent: this, dependsOn: opts?.dependsOn };
    const labels = { "k8s-app": name };
    const metadata = { name, namespace, labels };

    const account = new ServiceAccount(`${resourceName}-account`, { metadata }, child);
    const rights = clusterRights(
      `${resourceName}-cluster`,
      metadata,
      [
        { apiGroups: [""], resources: ["nodes"], verbs: ["get", "patch"] },
        { apiGroups: [""], resources: ["pods"], verbs: ["list", "get", "delete"] },
        { apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"] },
        { apiGroups: ["apps"], resources: ["daemonsets"], verbs: ["get"] },
      ],
      child,
    );
    const policyBinding = deniedBy(
      resourceName,
      { name: "zoned-kured-lock", labels },
      lockPolicy,
      child,
    );
    const role = new Role(
      `${resourceName}-role`,
      {
        metadata,
        rules: [
          {
            apiGroups: ["apps"],
            resources: ["daemonsets"],
            resourceNames: [name],
            verbs: ["update"],
          },
        ],
      },
      { ...child, dependsOn: [policyBinding] },
    );
    const binding = new RoleBinding(
      `${resourceName}-binding`,
      { metadata, roleRef: { apiGroup: rbac, kind: "Role", name }, subjects: subjectsOf(metadata) },
      child,
    );
    const spec = {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: podSpec(args) },
    };
    new DaemonSet(
      `${resourceName}-daemon-set`,
      { metadata: withoutWaiting(metadata), spec },
      { ...child, dependsOn: [account, ...rights, role, binding] },
    );
    this.targets = [{ kind: "DaemonSet", namespace, name, spec }];
    this.registerOutputs();
  }
}

const podSpec = ({ settings: { drainMinutes }, window }: RebootsArgs) => ({
  serviceAccountName: name,
  nodeSelector: { "kubernetes.io/os": "linux" },
  tolerations: [{ operator: "Exists" }],
  priorityClassName: "system-node-critical",
  // It asks the machine and reboots it by nsenter into the mounts of process 1.
  hostPID: true,
  // A Service by its name would be read as flags (KURED_…).
  enableServiceLinks: false,
  containers: [
    {
      name,
      image: kuredImage,
      args: [
        `--reboot-days=${window.days.join(",")}`,
        `--start-time=${window.from}`,
        `--end-time=${window.to}`,
        "--time-zone=UTC",
        `--reboot-sentinel-command=sh -c '${sentinelScript}'`,
        `--reboot-command=${rebootCommand}`,
        "--concurrency=1",
        `--period=${periodMinutes}m`,
        `--drain-timeout=${drainMinutes}m`,
        // No --lock-release-delay: a machine whose drain fails would stay cordoned so much longer (kured #1129).
        `--lock-ttl=${drainMinutes + bootMinutes}m`,
        "--annotate-nodes=true",
        "--metrics-host=127.0.0.1",
      ],
      env: [{ name: "KURED_NODE_ID", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }],
      resources: { requests: { cpu: "10m", memory: "32Mi" } },
      securityContext: { privileged: true, readOnlyRootFilesystem: true },
    },
  ],
});
