import type { NodeRegistration } from "./kubeadm";
import { fakeNode, networkNotReady, nodeConditions } from "./kwok";
import type { VirtualMachine } from "./machines";
import type { Payload } from "../../components/bootstrap";

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

const controlPlaneTaint: NodeTaint = {
  key: "node-role.kubernetes.io/control-plane",
  effect: "NoSchedule",
};

/** GiB of memory for each core in the families of sizes that clusters are built from. */
const gibPerCore: Readonly<Record<string, number>> = { B: 4, D: 4, E: 8, F: 2, M: 28 };
const osDiskGib = 64;
const podsPerNode = 110;

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

/** What a size has, near enough for a scheduler: Standard_D4s_v5 has 4 cores and 16 GiB. */
export function capacityOf(size: string): Record<string, string> {
  const [, family = "D", cores = "2"] = /^Standard_([A-Z])[A-Z]*(\d+)/.exec(size) ?? [];
  return {
    cpu: cores,
    memory: `${Number(cores) * (gibPerCore[family] ?? 4)}Gi`,
    pods: `${podsPerNode}`,
    "ephemeral-storage": `${osDiskGib}Gi`,
  };
}

/** The Node that a kubelet registers for itself. */
export function nodeOf(
  vm: VirtualMachine,
  registration: NodeRegistration,
  { role, kubernetesVersion }: Pick<Payload, "role" | "kubernetesVersion">,
) {
  const nodeIp = argument(registration, "node-ip");
  if (nodeIp !== undefined && nodeIp !== vm.privateAddress) {
    throw new Error(
      `the kubelet of ${vm.name} is given node-ip ${nodeIp}, and no interface of the machine has it (it has ${vm.privateAddress})`,
    );
  }
  const external = argument(registration, "cloud-provider") === "external";
  const arch = /^Standard_[A-Z]+\d+[a-z]*p/.test(vm.size) ? "arm64" : "amd64";
  const capacity = capacityOf(vm.size);
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: registration.name ?? vm.name,
      labels: {
        "beta.kubernetes.io/arch": arch,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": arch,
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": vm.name,
        ...Object.fromEntries(pairs(argument(registration, "node-labels"))),
      },
      annotations: {
        ...fakeNode,
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
        architecture: arch,
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

export const readyMessage = (node: Record<string, any>): string =>
  readyCondition(node)?.message ?? networkNotReady.message;

export const isReady = (node: Record<string, any>): boolean =>
  readyCondition(node)?.status === "True";

export const readyCondition = (node: Record<string, any>) =>
  node.status?.conditions?.find(({ type }: { type: string }) => type === "Ready") as
    { status: string; message: string } | undefined;

/** Whether this Node was registered by this generation of the machine. */
export const isOf = (node: Record<string, any>, vm: VirtualMachine): boolean =>
  node.status?.nodeInfo?.systemUUID === vm.vmId;
