import * as pulumi from "@pulumi/pulumi";
import { DaemonSet } from "@pulumi/kubernetes/apps/v1";
import { ConfigMap, Namespace, ServiceAccount } from "@pulumi/kubernetes/core/v1";

import type { ApiServer } from "../api-server";
import { digest } from "../digest";
import { portRange } from "../settings/rules/argument-types";
import type { Settings } from "../settings/settings";
import { flannelImage, manifests as sources } from "../versions";
import {
  apiServerEnv,
  applyObjects,
  isWorkload,
  objectIn,
  parseObjects,
  unreadyMayGo,
  withoutWaiting,
  Workload,
} from "./objects";
import { RollOutTarget, targetOf } from "./roll-out";
import { clusterRights } from "./cluster-rights";

const namespace = "kube-flannel";

/** What VXLAN puts around a pod's packet: Ethernet, IPv4, UDP and its own header. */
const vxlanBytes = 50;

/**
 * The longest packet that a pod may send: Azure's network interfaces take 1500 bytes.
 *
 * @see https://learn.microsoft.com/azure/virtual-network/virtual-network-tcpip-performance-tuning
 */
const podMtu = 1500 - vxlanBytes;

/** flannel's net-conf.json. Its MTU it takes from the network interface, less VXLAN's share. */
const netConf = (podCidr: string): string =>
  JSON.stringify({ Network: podCidr, Backend: { Type: "vxlan" } }, null, 2);

/** Of pods that read a ConfigMap when they start: another one starts them anew. */
const annotationsFor = (data: Readonly<Record<string, string>>) => ({
  "zoned/configuration": digest(data),
});

export interface FlannelArgs {
  readonly settings: Pick<Settings, "podCidr">;
  readonly apiServer: ApiServer;
}

/**
 * flannel alone: a pod network without network policies, for clusters that need none or bring their
 * own. Applied without waiting, as Canal is.
 */
class Flannel extends pulumi.ComponentResource {
  /** What to await once there are machines for it to run on. */
  readonly targets: readonly RollOutTarget[];

  constructor(name: string, args: FlannelArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Flannel", name, {}, opts);
    const { settings, apiServer } = args;
    const child = { parent: this, dependsOn: opts?.dependsOn };
    const labels = { "k8s-app": "flannel" };

    const home = new Namespace(
      `${name}-namespace`,
      {
        metadata: {
          name: namespace,
          // It sets up the host's network, which the stricter levels forbid.
          labels: { ...labels, "pod-security.kubernetes.io/enforce": "privileged" },
        },
      },
      child,
    );
    const within = { parent: this, dependsOn: [home] };
    const metadata = { name: "flannel", namespace, labels };
    const account = new ServiceAccount(`${name}-account`, { metadata }, within);
    const rights = clusterRights(
      name,
      metadata,
      [
        { apiGroups: [""], resources: ["pods"], verbs: ["get"] },
        { apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "watch"] },
        { apiGroups: [""], resources: ["nodes/status"], verbs: ["patch"] },
      ],
      child,
    );
    const data = { "cni-conf.json": cniConf, "net-conf.json": netConf(settings.podCidr) };
    const config = new ConfigMap(
      `${name}-config`,
      { metadata: { name: "kube-flannel-cfg", namespace, labels }, data },
      within,
    );

    const spec = daemonSetSpec(apiServer, annotationsFor(data));
    new DaemonSet(
      `${name}-daemon-set`,
      {
        metadata: withoutWaiting({ name: "kube-flannel-ds", namespace, labels }),
        spec,
      },
      { ...within, dependsOn: [account, ...rights, config] },
    );
    this.targets = [{ kind: "DaemonSet", namespace, name: "kube-flannel-ds", spec }];
    this.registerOutputs();
  }
}

/**
 * What flannel's own CNI plugin would hand to the bridge plugin for each pod. A Node's subnet never
 * changes, so it is written once, and the plugins that come with the kubelet's package do. A machine that joins a
 * second time gets another one, and the bridge keeps its address unless another is forced.
 */
const cniConf = JSON.stringify(
  {
    name: "cbr0",
    cniVersion: "0.3.1",
    plugins: [
      {
        type: "bridge",
        bridge: "cni0",
        mtu: "MTU",
        hairpinMode: true,
        isDefaultGateway: true,
        forceAddress: true,
        ipam: {
          type: "host-local",
          ranges: [[{ subnet: "SUBNET" }]],
          routes: [{ dst: "NETWORK" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  },
  null,
  2,
);

const fromField = (name: string, fieldPath: string) => ({
  name,
  valueFrom: { fieldRef: { fieldPath } },
});

/**
 * A node is ready as soon as a CNI configuration is there, and gets pods; so it comes with
 * flanneld's subnet. subnet.env names it by its first address, the bridge's, and host-local takes
 * only its zeroth. No postStart hook: one that runs while the kubelet restarts is lost for good.
 */
const runFlanneld = `
rm -f /run/flannel/subnet.env
install_cni() {
until [ -e /run/flannel/subnet.env ]; do sleep 1; done
. /run/flannel/subnet.env
bridge=\${FLANNEL_SUBNET%/*}
subnet=\${bridge%.*}.$((\${bridge##*.} - 1))/\${FLANNEL_SUBNET#*/}
conf=/etc/cni/net.d/10-flannel.conflist
sed -e "s|\\"MTU\\"|$FLANNEL_MTU|" -e "s|SUBNET|$subnet|" -e "s|NETWORK|$FLANNEL_NETWORK|" \\
  /etc/kube-flannel/cni-conf.json >$conf.new && mv $conf.new $conf
}
{ install_cni || kill $$; } &
exec /opt/bin/flanneld "$@"
`;

/**
 * How often flanneld looks whether its rules are still there, by some ten programs that it starts.
 * Its own default of 5 s is an eighth of a slow processor; nobody but who flushes all rules takes
 * them away.
 */
const resyncSeconds = 30;

function daemonSetSpec(apiServer: ApiServer, annotations: Readonly<Record<string, string>>) {
  const labels = { app: "flannel" };
  return {
    selector: { matchLabels: labels },
    template: {
      metadata: { labels, annotations },
      spec: {
        hostNetwork: true,
        nodeSelector: { "kubernetes.io/os": "linux" },
        priorityClassName: "system-node-critical",
        tolerations: [{ operator: "Exists" }],
        serviceAccountName: "flannel",
        containers: [
          {
            name: "kube-flannel",
            image: flannelImage,
            command: ["sh", "-c", runFlanneld, "flanneld"],
            args: ["--ip-masq", "--kube-subnet-mgr", `--iptables-resync=${resyncSeconds}`],
            resources: { requests: { cpu: "100m", memory: "50Mi" } },
            securityContext: { privileged: false, capabilities: { add: ["NET_ADMIN", "NET_RAW"] } },
            env: [
              ...apiServerEnv(apiServer),
              fromField("POD_NAME", "metadata.name"),
              fromField("POD_NAMESPACE", "metadata.namespace"),
              { name: "EVENT_QUEUE_DEPTH", value: "5000" },
            ],
            volumeMounts: [
              { name: "run", mountPath: "/run/flannel" },
              { name: "cni", mountPath: "/etc/cni/net.d" },
              { name: "flannel-cfg", mountPath: "/etc/kube-flannel/" },
              { name: "xtables-lock", mountPath: "/run/xtables.lock" },
            ],
          },
        ],
        volumes: [
          { name: "run", hostPath: { path: "/run/flannel" } },
          { name: "cni", hostPath: { path: "/etc/cni/net.d" } },
          { name: "flannel-cfg", configMap: { name: "kube-flannel-cfg" } },
          { name: "xtables-lock", hostPath: { path: "/run/xtables.lock", type: "FileOrCreate" } },
        ],
      },
    },
  };
}

export interface CniArgs {
  readonly settings: Pick<Settings, "cni" | "podCidr" | "kubeadm">;
  readonly apiServer: ApiServer;
  /** Text of upstream's files by path. */
  readonly manifests: ReadonlyMap<string, string>;
}

/**
 * The pod network that the settings name, or nothing for those who bring their own.
 *
 * It is applied, not awaited: machines become ready through it, so joins depend on this whole
 * component.
 */
export class Cni extends pulumi.ComponentResource {
  /** What to await once there are machines for it to run on. */
  readonly targets: readonly RollOutTarget[];

  constructor(name: string, args: CniArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Cni", name, {}, opts);
    const { cni } = args.settings;
    const child = { parent: this, dependsOn: opts?.dependsOn };

    switch (cni) {
      case "canal":
        this.targets = new Canal("canal", args, child).targets;
        break;
      case "flannel":
        this.targets = new Flannel("flannel", args, child).targets;
        break;
      case "none":
        this.targets = [];
        break;
      default:
        throw new Error(`cni ${cni satisfies never} is not known`);
    }
    this.registerOutputs();
  }
}

export interface CanalArgs {
  readonly settings: Pick<Settings, "podCidr" | "kubeadm">;
  /** Text of upstream's files by path. */
  readonly manifests: ReadonlyMap<string, string>;
}

/**
 * Canal: flannel carries the pods' packets, Calico enforces network policies.
 *
 * Upstream's manifest, with the pod range and MTU of this cluster.
 */
export class Canal extends pulumi.ComponentResource {
  /** What to await once there are machines for it to run on. */
  readonly targets: readonly RollOutTarget[];

  constructor(name: string, args: CanalArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Canal", name, {}, opts);
    const { settings, manifests } = args;

    const objects = sources.canal.flatMap(({ path }) =>
      parseObjects(path, manifests.get(path) ?? ""),
    );
    const { data } = objectIn<{ data: Record<string, string> }>(
      objects,
      "ConfigMap",
      "canal-config",
    );
    data["net-conf.json"] = netConf(settings.podCidr);
    // Left to itself, Calico takes the network interface's MTU: it does not know of flannel's
    // VXLAN.
    data["veth_mtu"] = String(podMtu);
    const canal = objectIn<Workload>(objects, "DaemonSet", "canal");
    canal.spec.template.metadata.annotations = annotationsFor(data);
    const budget = objectIn<{ spec: { unhealthyPodEvictionPolicy?: string } }>(
      objects,
      "PodDisruptionBudget",
      "calico-kube-controllers",
    );
    budget.spec.unhealthyPodEvictionPolicy = unreadyMayGo;

    const nodePorts = portRange(
      settings.kubeadm.apiServerExtraArgs["service-node-port-range"] ?? "",
    );
    if (nodePorts !== undefined) {
      // With IPVS, Calico tells node ports from the host's own by their range alone.
      const node = canal.spec.template.spec.containers.find((one) => one.name === "calico-node");
      node?.env?.push({ name: "FELIX_KUBENODEPORTRANGES", value: nodePorts.join(":") });
    }

    applyObjects(name, objects, { parent: this, dependsOn: opts?.dependsOn });
    this.targets = objects.filter(isWorkload).map(targetOf);
    this.registerOutputs();
  }
}
