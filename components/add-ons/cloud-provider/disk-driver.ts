import { CustomResource } from "@pulumi/kubernetes/apiextensions";
import { Secret } from "@pulumi/kubernetes/core/v1";
import * as pulumi from "@pulumi/pulumi";

import type { ApiServer } from "../../api-server";
import { tagsOf } from "../../azure/stack-tag";
import type { ProxySettings } from "../../settings/proxy";
import type { Settings } from "../../settings/settings";
import { manifests as sources } from "../../versions";
import { CloudConfig, cloudConfigSecret, proxyEnv } from "./cloud-config";
import {
  apiServerEnv,
  applyObjects,
  isWorkload,
  ManifestObject,
  nodeSelector,
  objectIn,
  parseObjects,
  replicas,
  spread,
  strategy,
  tolerations,
  Workload,
} from "../objects";
import { loginParts, type ServiceAccountLogin } from "../workload-identity";
import { RollOutTarget, targetOf } from "../roll-out";

/** The driver's name in Kubernetes. */
export const driverName = "disk.csi.azure.com";

/** What has it tag the disks and snapshots of a class. */
export function tagParameters(settings: Pick<Settings, "resourceGroup" | "tags">): {
  readonly tags?: string;
} {
  const tags = Object.entries(tagsOf(settings)).map(([key, value]) => `${key}=${value}`);
  return tags.length > 0 ? { tags: tags.join(",") } : {};
}

/**
 * Where the driver on machines looks for azure.json: it asks the metadata service alone, and whoever is root on a
 * worker can read what it can.
 */
const nodeSecret = { ...cloudConfigSecret, name: "azure-disk-node" };

export interface DiskDriverArgs {
  readonly settings: Pick<Settings, "controlPlaneCount" | "resourceGroup" | "tags"> & ProxySettings;
  /** Text of upstream's files by path. */
  readonly manifests: ReadonlyMap<string, string>;
  readonly cloudConfig: CloudConfig;
  /** Undefined where its controller logs in as its machine. */
  readonly login?: ServiceAccountLogin;
  readonly apiServer: ApiServer;
}

/**
 * Azure's disk driver and the snapshot controller: upstream's sources, with the controller where
 * the identity is.
 */
export class DiskDriver extends pulumi.ComponentResource {
  /** What to await once all machines have joined. */
  readonly targets: readonly RollOutTarget[];

  constructor(name: string, args: DiskDriverArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:DiskDriver", name, {}, opts);
    const { settings, manifests, cloudConfig, apiServer } = args;
    const child = { parent: this, dependsOn: opts?.dependsOn };

    const objects = sources.diskDriver.flatMap(({ path }) =>
      parseObjects(path, manifests.get(path) ?? ""),
    );
    placeController(objects, settings, cloudConfig);
    placeSnapshotController(objects);
    narrowSecrets(objects);
    letHoldSnapshots(objects);
    for (const [kind, workload] of [
      ["Deployment", "csi-azuredisk-controller"],
      ["DaemonSet", "csi-azuredisk-node"],
    ] as const) {
      readFromSecret(objectIn<Workload>(objects, kind, workload), apiServer);
    }
    readFromNodeSecret(objectIn<Workload>(objects, "DaemonSet", "csi-azuredisk-node"));
    useProxy(
      objectIn<Workload>(objects, "Deployment", "csi-azuredisk-controller"),
      settings,
      apiServer.name,
    );
    logIn(objectIn<Workload>(objects, "Deployment", "csi-azuredisk-controller"), args.login);
    this.targets = objects.filter(isWorkload).map(targetOf);

    const isDefinition = ({ kind }: ManifestObject) => kind === "CustomResourceDefinition";
    // They stay when the driver goes: with a definition all its objects would go, and those that the
    // controllers have to let go first would hold it for ever.
    const definitions = applyObjects(name, objects.filter(isDefinition), {
      ...child,
      retainOnDelete: true,
    });
    const { namespace, key } = nodeSecret;
    const onNodes = new Secret(
      `${name}-node-config`,
      {
        metadata: { name: nodeSecret.name, namespace },
        type: "Opaque",
        data: { [key]: cloudConfig.withoutCredential },
      },
      child,
    );
    // The snapshot controller ends when it does not find its definitions at once.
    applyObjects(
      name,
      objects.filter((object) => !isDefinition(object)),
      {
        ...child,
        dependsOn: [cloudConfig, onNodes, ...definitions],
      },
    );
    new CustomResource(
      `${name}-snapshot-class`,
      {
        apiVersion: "snapshot.storage.k8s.io/v1",
        kind: "VolumeSnapshotClass",
        metadata: {
          name: "azure-disk",
          annotations: { "snapshot.storage.kubernetes.io/is-default-class": "true" },
        },
        driver: driverName,
        deletionPolicy: "Delete",
        // Only what changed since the last one; where a region has zones, Azure keeps it in all of
        // them.
        parameters: { incremental: "true", ...tagParameters(settings) },
      },
      { ...child, dependsOn: definitions },
    );
    this.registerOutputs();
  }
}

function placeController(
  objects: readonly ManifestObject[],
  settings: DiskDriverArgs["settings"],
  cloudConfig: CloudConfig,
): void {
  const { spec } = objectIn<Workload>(objects, "Deployment", "csi-azuredisk-controller");
  const pod = spec.template.spec;
  spec.replicas = replicas(settings);
  spec.strategy = strategy;
  spec.template.metadata.annotations = { "zoned/cloud-config": cloudConfig.digest };
  pod.nodeSelector = nodeSelector;
  pod.tolerations = tolerations;
  pod.topologySpreadConstraints = spread(spec.selector.matchLabels);
}

/**
 * Has the driver read azure.json from the Secret and nowhere else.
 *
 * It does so once, when it starts, and on a node goes on without: on a new machine, where kube-proxy
 * has not programmed the Service's address yet, it would report no zone, and nobody asks again
 * (azuredisk-csi-driver #3400). Upstream's other source is a folder that holds the cluster's keys.
 */
function readFromSecret({ spec }: Workload, apiServer: ApiServer): void {
  const pod = spec.template.spec;
  const keys = "azure-cred";
  pod.volumes = pod.volumes?.filter((volume) => volume.name !== keys);
  for (const container of pod.containers) {
    container.volumeMounts = container.volumeMounts?.filter((mount) => mount.name !== keys);
    if (container.name === "azuredisk") {
      container.env = [...(container.env ?? []), ...apiServerEnv(apiServer)];
    }
  }
}

function readFromNodeSecret({ spec }: Workload): void {
  const driver = spec.template.spec.containers.find(({ name }) => name === "azuredisk")!;
  driver.args = [...(driver.args ?? []), `--cloud-config-secret-name=${nodeSecret.name}`];
}

/**
 * Only the controller calls Azure; on nodes the driver asks the metadata service. A proxy that answers in
 * others' names is trusted by the machine, and not by the image.
 */
function useProxy({ spec }: Workload, settings: ProxySettings, apiName: string): void {
  const pod = spec.template.spec;
  const driver = pod.containers.find(({ name }) => name === "azuredisk")!;
  driver.env = [...(driver.env ?? []), ...proxyEnv(settings, apiName)];
  if (!settings.httpProxy?.ca) return;
  const name = "certificates";
  driver.volumeMounts = [
    ...(driver.volumeMounts ?? []),
    { name, mountPath: "/etc/ssl", readOnly: true },
  ];
  pod.volumes = [
    ...(pod.volumes ?? []),
    { name, hostPath: { path: "/etc/ssl", type: "Directory" } },
  ];
}

function logIn({ spec }: Workload, login: ServiceAccountLogin | undefined): void {
  const { env, volumes, volumeMounts } = loginParts(login);
  const pod = spec.template.spec;
  const driver = pod.containers.find(({ name }) => name === "azuredisk")!;
  driver.env = [...(driver.env ?? []), ...env];
  driver.volumeMounts = [...(driver.volumeMounts ?? []), ...volumeMounts];
  pod.volumes = [...(pod.volumes ?? []), ...volumes];
}

/**
 * It never calls Azure, so it may run anywhere; upstream tolerates a taint that kubeadm does not
 * set.
 */
function placeSnapshotController(objects: readonly ManifestObject[]): void {
  const { spec } = objectIn<Workload>(objects, "Deployment", "csi-snapshot-controller");
  spec.template.spec.tolerations = tolerations;
  spec.template.spec.topologySpreadConstraints = spread(spec.selector.matchLabels);
}

interface Role {
  readonly rules: {
    apiGroups: string[];
    resources: string[];
    resourceNames?: string[];
    verbs: string[];
  }[];
}

/**
 * csi-provisioner 6 watches VolumeSnapshots, and has one stay by a finalizer while it makes a volume of it. The
 * driver's manifests do not let it.
 */
function letHoldSnapshots(objects: readonly ManifestObject[]): void {
  const role = objectIn<Role>(objects, "ClusterRole", "azuredisk-external-provisioner-role");
  role.rules.push({
    apiGroups: ["snapshot.storage.k8s.io"],
    resources: ["volumesnapshots"],
    verbs: ["watch", "update"],
  });
}

/** Upstream lets the driver read every Secret of the cluster; it reads one, and another one on machines. */
function narrowSecrets(objects: readonly ManifestObject[]): void {
  for (const role of objects.filter(({ kind }) => kind === "ClusterRole")) {
    const { rules } = role as unknown as Role;
    for (const rule of rules.filter(({ resources }) => resources.includes("secrets"))) {
      rule.verbs = ["get"];
      const { name } =
        role.metadata.name === "csi-azuredisk-node-role" ? nodeSecret : cloudConfigSecret;
      rule.resourceNames = [name];
    }
  }
}
