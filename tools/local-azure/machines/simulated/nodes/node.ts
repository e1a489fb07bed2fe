import type { Payload } from "../../../../../components/machine/payload";
import { findSize } from "../../../arm/subscription/offers";
import type { Body } from "../api";
import type { VirtualMachine } from "../../machines";
import type { NodeRegistration } from "../control-plane/kubeadm-command";
import { fakeNode, networkNotReady, nodeConditions } from "./kwok";

export interface NodeTaint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

export const uninitialized: NodeTaint = {
  key: "node.cloudprovider.kubernetes.io/uninitialized",
  value: "true",
  effect: "NoSchedule",
};

export const shutDown: NodeTaint = {
  key: "node.cloudprovider.kubernetes.io/shutdown",
  effect: "NoSchedule",
};

const controlPlaneTaint: NodeTaint = {
  key: "node-role.kubernetes.io/control-plane",
  effect: "NoSchedule",
};

export const nodePath = (name: string): string => `/api/v1/nodes/${name}`;

const osDiskGib = 64;

/** A kubelet's argument, as kubeadm passes it on; the last of several counts. */
const argument = ({ kubeletExtraArgs = [] }: NodeRegistration, name: string): string | undefined =>
  kubeletExtraArgs.findLast((arg) => arg.name === name)?.value;

const pairs = (text: string | undefined): [string, string][] =>
  (text ?? "")
    .split(",")
    .filter((pair) => pair !== "")
    .map((pair) => {
      const at = pair.indexOf("=");
      return at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)];
    });

/** `key=value:Effect`, and without a value `key:Effect`. */
const registeredTaints = (text: string | undefined): NodeTaint[] =>
  (text ?? "")
    .split(",")
    .filter((taint) => taint !== "")
    .map((taint) => {
      const [left = "", effect = ""] = taint.split(":");
      const [key = "", value] = left.split("=");
      return { key, ...(value && { value }), effect };
    });

/** Capacity and architecture of a node of this VM size, as the list of SKUs has them. */
function nodeSize(name: string, maxPods: number) {
  const size = findSize(name);
  if (size === undefined) throw new Error(`${name} is not in the local Azure's list of VM sizes`);
  const { cores, memoryGb, architecture } = size;
  return {
    architecture: architecture === "Arm64" ? "arm64" : "amd64",
    capacity: {
      cpu: `${cores}`,
      memory: `${memoryGb}Gi`,
      pods: `${maxPods}`,
      "ephemeral-storage": `${osDiskGib}Gi`,
    },
  };
}

/** The Node that a kubelet registers for itself. */
export function nodeOf(
  vm: VirtualMachine,
  registration: NodeRegistration,
  { role, kubernetesVersion, maxPods }: Pick<Payload, "role" | "kubernetesVersion" | "maxPods">,
) {
  const nodeIp = argument(registration, "node-ip");
  if (nodeIp !== undefined && nodeIp !== vm.privateAddress) {
    throw new Error(
      `the kubelet of ${vm.name} is given node-ip ${nodeIp}, and no interface of the machine has it (it has ${vm.privateAddress})`,
    );
  }
  const external = argument(registration, "cloud-provider") === "external";
  const { architecture, capacity } = nodeSize(vm.size, maxPods);
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: registration.name ?? vm.name,
      labels: {
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": vm.name,
        ...Object.fromEntries(pairs(argument(registration, "node-labels"))),
      },
      annotations: {
        ...fakeNode,
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        ...(external && nodeIp && { "alpha.kubernetes.io/provided-node-ip": nodeIp }),
      },
    },
    spec: {
      taints: [
        ...(external ? [uninitialized] : []),
        ...registeredTaints(argument(registration, "register-with-taints")),
        // kubeadm marks control planes after they have joined, by an administrator's hand.
        ...(role === "worker" ? (registration.taints ?? []) : []),
      ],
    },
    status: {
      capacity,
      allocatable: capacity,
      addresses: [
        { type: "InternalIP", address: vm.privateAddress },
        { type: "Hostname", address: vm.name },
      ],
      conditions: nodeConditions(false, new Date().toISOString()),
      nodeInfo: {
        architecture,
        operatingSystem: "linux",
        kubeletVersion: `v${kubernetesVersion}`,
        containerRuntimeVersion: "simulated://",
        kernelVersion: "simulated",
        osImage: vm.image,
        systemUUID: vm.vmId,
        machineID: vm.vmId,
        bootID: vm.vmId,
        kubeProxyVersion: "",
      },
    },
  };
}

/** What kubeadm makes of a Node by `mark-control-plane`, as a patch. */
export function controlPlaneMark(
  { taints = [controlPlaneTaint] }: NodeRegistration,
  present: readonly NodeTaint[],
) {
  const missing = taints.filter(
    (taint) => !present.some(({ key, effect }) => key === taint.key && effect === taint.effect),
  );
  return {
    metadata: {
      labels: {
        "node-role.kubernetes.io/control-plane": "",
        "node.kubernetes.io/exclude-from-external-load-balancers": "",
      },
    },
    ...(missing.length > 0 && { spec: { taints: [...present, ...missing] } }),
  };
}

/** What the API shows of a machine that has gone silent. */
export const unreachable = (since: string) => ({
  status: {
    conditions: ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"].map((type) => ({
      type,
      status: "Unknown",
      reason: "NodeStatusUnknown",
      message: "Kubelet stopped posting node status.",
      lastTransitionTime: since,
    })),
  },
});

/** The Ready condition in words, as the bootstrap script prints it. */
export function readyText(node: Body): string {
  const { status, reason, message } = readyCondition(node) ?? networkNotReady;
  return [status, reason, message].filter(Boolean).join(" ");
}

export const isReady = (node: Body): boolean => readyCondition(node)?.status === "True";

export const readyCondition = (node: Body) =>
  node.status?.conditions?.find(({ type }: { type: string }) => type === "Ready") as
    { status: string; reason?: string; message: string } | undefined;

/** Whether this Node was registered by this generation of the machine. */
export const isOf = (node: Body, vm: VirtualMachine): boolean =>
  node.status?.nodeInfo?.systemUUID === vm.vmId;
