import * as pulumi from "@pulumi/pulumi";

import type { ApiServer } from "../api-server";
import type { Certificates } from "../certificates";
import type { ClusterGroup } from "../cluster-group";
import { CloudCredential } from "../identity";
import type { DiskClass, DiskEncryptionSet } from "../azure/disk-classes";
import type { ExistingNetwork } from "../azure/existing-network";
import type { Settings } from "../settings/settings";
import { CloudConfig } from "./cloud-provider/cloud-config";
import { CloudControllerManager } from "./cloud-provider/cloud-controller-manager";
import { DiskDriver } from "./cloud-provider/disk-driver";
import { KubeProxy } from "./kube-proxy";
import { loginAdmins } from "./cluster-rights";
import { MetricsServer } from "./metrics-server";
import { NodeAddOns } from "./node-add-ons";
import { Reboots } from "./reboots";
import { RollOut } from "./roll-out";
import { StorageClasses } from "./cloud-provider/storage-classes";
import { Injection } from "./workload-identity";
import type { WorkloadIdentities } from "../workload-identities";

export interface AddOnsArgs {
  readonly resourceGroup: ClusterGroup;
  readonly settings: Settings;
  readonly existingNetwork?: ExistingNetwork;
  readonly tenantId: string;
  readonly subscriptionId: string;
  readonly credential: CloudCredential;
  readonly workloadIdentities: Pick<WorkloadIdentities, "clients">;
  readonly federation: {
    /** Whether the cloud provider and the disk driver log in by tokens of their service accounts. */
    readonly isUsed: boolean;
  };
  readonly certificates: Pick<Certificates, "cluster">;
  readonly apiServer: ApiServer;
  /** Secret. */
  readonly kubeconfig: pulumi.Input<string>;
  /** Text of upstream's files by path. */
  readonly manifests: ReadonlyMap<string, string>;
  /** In a living cluster a change waits until all machines are what they shall be. */
  readonly initialization: { readonly id: string; readonly exists: boolean };
  readonly diskClasses: readonly DiskClass[];
  readonly diskEncryptionSet?: DiskEncryptionSet;
  readonly nodeAddOns: NodeAddOns;
  /**
   * What needs the identity runs on control planes, and its second replica on the second of them.
   */
  readonly controlPlaneJoins: readonly pulumi.Resource[];
  /** Ends of all joins but of new spot machines. What runs in the cluster is awaited after them. */
  readonly joins: readonly pulumi.Resource[];
  /** What this update records of each machine, by its name. */
  readonly machineRecords: ReadonlyMap<string, { readonly bootstrapRequestedAt: string }>;
}

/** What makes a cluster of ready nodes a useful one. Each part can be left out by a setting. */
export class AddOns extends pulumi.ComponentResource {
  /** All that is to run, such as `DaemonSet kube-system/kube-proxy`. */
  readonly workloads: readonly string[];

  constructor(name: string, args: AddOnsArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:AddOns", name, {}, opts);
    const { settings, nodeAddOns, controlPlaneJoins, joins, machineRecords } = args;
    const { exists } = args.initialization;
    const atOnce = { parent: this, dependsOn: opts?.dependsOn };
    const [initial, ...others] = controlPlaneJoins;
    const twoControlPlanes = [initial!, ...others.slice(0, 1)];
    const onControlPlanes = {
      parent: this,
      dependsOn: [nodeAddOns, ...(exists ? controlPlaneJoins : twoControlPlanes)],
    };
    // Its modules must be seen on every machine before the mode of a living cluster changes.
    const kubeProxy = new KubeProxy("kube-proxy", args, {
      parent: this,
      dependsOn: exists ? [...joins] : [initial!],
    });
    const awaited: (pulumi.Resource & Pick<NodeAddOns, "targets">)[] = [nodeAddOns, kubeProxy];

    if (settings.cloudProvider || settings.diskDriver) {
      const cloudConfig = new CloudConfig("cloud-config", args, atOnce);
      const { resourceManagerEndpoint } = settings;
      const { clientId } = args.credential;
      const login = args.federation.isUsed
        ? { tenantId: args.tenantId, clientId, resourceManagerEndpoint }
        : undefined;
      if (settings.cloudProvider) {
        awaited.push(
          new CloudControllerManager(
            "cloud-controller-manager",
            { ...args, cloudConfig, login },
            onControlPlanes,
          ),
        );
      }
      if (settings.diskDriver) {
        awaited.push(
          new DiskDriver("disk-driver", { ...args, cloudConfig, login }, onControlPlanes),
        );
      }
    }
    if (settings.entra !== undefined && settings.entra.admins.length > 0) {
      loginAdmins(settings.entra, atOnce);
    }
    if (settings.storageClasses) {
      new StorageClasses("storage-classes", args, atOnce);
    }
    const { clients } = args.workloadIdentities;
    if (Object.keys(clients).length > 0) {
      new Injection("workload-identity", { ...args, clients }, atOnce);
    }
    // A kubelet has a certificate that can be verified when its machine's step has ended.
    const afterJoins = { parent: this, dependsOn: [nodeAddOns, ...joins] };
    const awaitedByThemselves = settings.metricsServer
      ? [new MetricsServer("metrics-server", args, afterJoins)]
      : [];
    if (settings.reboots) {
      awaited.push(new Reboots("reboots", { settings, window: settings.reboots }, afterJoins));
    }
    this.workloads = [...awaited, ...awaitedByThemselves]
      .flatMap(({ targets }) => targets)
      .map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`);
    const ofMachines = [...machineRecords].map(
      ([machine, { bootstrapRequestedAt }]) => `${machine}/${bootstrapRequestedAt}`,
    );
    // A Deployment that has not got well by itself is no reason to stop an update that changes machines alone.
    const waits = { DaemonSet: ofMachines, Deployment: [args.initialization.id] };
    for (const kind of ["DaemonSet", "Deployment"] as const) {
      const targets = awaited.flatMap((one) => one.targets).filter((one) => one.kind === kind);
      if (targets.length === 0) continue;
      new RollOut(
        kind === "DaemonSet" ? "roll-out" : "controllers-roll-out",
        { targets, runs: waits[kind], kubeconfig: args.kubeconfig },
        { parent: this, dependsOn: [...awaited, ...joins] },
      );
    }
    this.registerOutputs();
  }
}
