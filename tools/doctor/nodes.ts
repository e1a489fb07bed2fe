import { drainMark, excluded } from "../../components/cluster/drain";
import { eventCordon } from "../../components/cluster/turns";
import { named, nodeProblems } from "../../components/cluster/cluster-health";
import { containerOf } from "../../components/cluster/kubernetes-api";
import { controlPlaneMark } from "../../components/settings/topology";
import { type Check, controlPlanesOf, type Expected, problemIf } from "./check";
import type { ClusterState } from "./cluster-state";

/** What Azure would not restart. */
export const startOff =
  "what is off (az vm list --show-details --query '[].{name:name, power:powerState}' --output table) is started with az vm start --resource-group GROUP --name NAME";

export function nodes(expected: Expected, state: ClusterState): Check {
  const names = expected.machines.map(({ name }) => name);
  const unexpected = state.nodes.filter(({ metadata }) => !names.includes(metadata.name));
  return {
    name: "Nodes",
    saw: `${names.length} machines, each with a Ready Node and a kubelet that renews its lease`,
    problems: [
      ...names.flatMap((machine) =>
        nodeProblems(machine, state, state.now).map((saw) => ({
          machine,
          saw,
          fix:
            named(state.nodes, machine) === undefined
              ? `pulumi up, which makes a machine anew that Azure no longer has, and one that runs without a Node, a control plane where all others are Ready; any other makes its Node when it starts: ${startOff}, and what runs is restarted with az vm restart`
              : `kubectl describe node ${machine}; if its kubelet is silent, ${startOff}, and what runs is restarted with az vm restart`,
        })),
      ),
      ...controlPlanesOf(expected)
        .filter((machine) => {
          const labels = named(state.nodes, machine)?.metadata.labels;
          return labels !== undefined && labels[controlPlaneMark] === undefined;
        })
        .map((machine) => ({
          machine,
          saw: "its Node has not the role of a control plane, as one that was deleted and that its kubelet has made anew: updates and reboots of others overlook it",
          fix:
            `kubectl label node ${machine} ${controlPlaneMark}= ${excluded}=; where control planes take no pods ` +
            `(schedulableControlPlanes), kubectl taint node ${machine} ${controlPlaneMark}:NoSchedule`,
        })),
      ...unexpected.map(({ metadata: { name } }) => ({
        saw: `Node ${name} is no machine of this stack`,
        fix: `kubectl delete node ${name}, if its machine is gone`,
      })),
    ],
  };
}

type Version = readonly [major: number, minor: number, patch: number];

function parseVersion(text: string | undefined): Version | undefined {
  const [, ...parts] = /v(\d+)\.(\d+)\.(\d+)/.exec(text ?? "") ?? [];
  return parts.length === 3 ? (parts.map(Number) as unknown as Version) : undefined;
}

const difference = (a: Version, b: Version): number => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
const spoken = (version: Version): string => `v${version.join(".")}`;

export function versions(expected: Expected, state: ClusterState): Check {
  const answering = parseVersion(state.version);
  const servers = controlPlanesOf(expected).flatMap((machine) => {
    const pod = named(state.pods, `kube-apiserver-${machine}`);
    const version = parseVersion(pod && containerOf(pod, "kube-apiserver")?.image) ?? answering;
    return pod === undefined || version === undefined
      ? []
      : [{ machine, what: "kube-apiserver", version }];
  });
  const kubelets = state.nodes.flatMap(({ metadata: { name: machine }, status }) => {
    const version = parseVersion(status?.nodeInfo?.kubeletVersion);
    return version === undefined ? [] : [{ machine, what: "kubelet", version }];
  });
  const all = [...servers, ...kubelets].sort((a, b) => difference(a.version, b.version));
  const oldest = [...servers].sort((a, b) => difference(a.version, b.version))[0];
  const newer = kubelets.filter(({ version }) => oldest && difference(version, oldest.version) > 0);
  const byVersion = new Map<string, typeof all>();
  for (const one of all) {
    const version = spoken(one.version);
    byVersion.set(version, [...(byVersion.get(version) ?? []), one]);
  }
  const running = [...byVersion]
    .map(([version, ones]) =>
      byVersion.size === 1
        ? version
        : `${version} (${ones.map(({ what, machine }) => `${what} of ${machine}`).join(", ")})`,
    )
    .join(", ");
  const span = all.length === 0 ? 0 : all.at(-1)!.version[1] - all[0]!.version[1];
  const planned = expected.kubernetesVersion && `v${expected.kubernetesVersion}`;
  return {
    name: "versions",
    saw: `API servers and kubelets are ${running}`,
    problems: [
      ...newer.map(({ machine, version }) => ({
        machine,
        saw: `its kubelet, ${spoken(version)}, is newer than the API server ${spoken(oldest!.version)} of ${oldest!.machine}, which Kubernetes does not support`,
        fix: "upgrade all control planes first: pulumi up",
      })),
      ...problemIf(span > 1, {
        saw: `more than one minor version lies between the oldest and the newest: ${running}`,
        fix: "replace the machines that are behind: pulumi up",
      }),
      ...problemIf(byVersion.size > 1, {
        saw: `an upgrade has not finished: ${running}`,
        fix: "pulumi up continues it",
      }),
      ...problemIf(byVersion.size === 1 && planned !== undefined && !byVersion.has(planned), {
        saw: `the cluster runs ${running}, and the last pulumi up that ended well had ${planned}`,
        fix: "pulumi up",
      }),
    ],
  };
}

/** kured's, with when it began, until the machine is back. */
const kuredReboot = "weave.works/kured-reboot-in-progress";

export function cordons({ nodes }: ClusterState): Check {
  const cordoned = nodes.filter(({ spec }) => spec?.unschedulable);
  return {
    name: "cordons",
    saw: "no Node is cordoned",
    problems: cordoned.map(({ metadata: { name, annotations = {} } }) => {
      const isOurs = annotations[drainMark]?.split(" ").includes("unschedulable");
      if (annotations[eventCordon] !== undefined) {
        return {
          machine: name,
          saw: "its Node is cordoned for an event of Azure, and takes pods again after it",
          fix: `kubectl describe node ${name}, which says for what; where Azure has no event for it any more: kubectl uncordon ${name}`,
        };
      }
      const reboot = annotations[kuredReboot];
      if (reboot !== undefined && !isOurs) {
        return {
          machine: name,
          saw: `its Node is cordoned by kured, for a reboot since ${reboot}`,
          fix: `it takes pods again after the reboot; where it does not: kubectl -n kube-system logs -l k8s-app=kured, and kubectl uncordon ${name}`,
        };
      }
      return !isOurs
        ? {
            machine: name,
            saw: "its Node is cordoned, not by this program",
            fix: `kubectl uncordon ${name}, when the maintenance is done`,
          }
        : {
            machine: name,
            saw: "its Node is cordoned by a pulumi up that has not ended well",
            fix: "pulumi up, which goes on, or uncordons it where the change was taken back",
          };
    }),
  };
}

export function pressure({ nodes }: ClusterState): Check {
  const kinds = ["MemoryPressure", "DiskPressure", "PIDPressure"];
  return {
    name: "pressure",
    saw: "no Node is short of memory, disk or process ids",
    problems: nodes.flatMap(({ metadata: { name }, status }) =>
      (status?.conditions ?? [])
        .filter((condition) => kinds.includes(condition.type) && condition.status === "True")
        .map(({ type, message }) => ({
          machine: name,
          saw: `its Node has ${type}${message ? `: ${message}` : ""}`,
          fix: `kubectl describe node ${name}: its pods are evicted until there is room; a larger size, or fewer pods`,
        })),
    ),
  };
}

/**
 * Which runtimes Nodes have. One that the next minor of Kubernetes does not take is said and is no problem: this
 * minor runs with it.
 */
export function runtimes({ nodes }: ClusterState): Check {
  const found = nodes.flatMap(({ metadata: { name }, status }) => {
    const runtime = status?.nodeInfo?.containerRuntimeVersion;
    return runtime === undefined ? [] : [{ name, runtime }];
  });
  const kinds = [...new Set(found.map(({ runtime }) => runtime.replace("://", " ").trim()))].sort();
  // Kubernetes 1.38 asks the runtime for its cgroup driver, which containerd answers from 2.0 on.
  const old = found.filter(({ runtime }) => runtime.startsWith("containerd://1."));
  return {
    name: "container runtimes",
    saw:
      old.length === 0
        ? kinds.join(", ")
        : `${kinds.join(", ")}; Kubernetes 1.38 takes no containerd before 2.0: make ${old.map(({ name }) => name).join(", ")} anew before that`,
    notAsked: found.length === 0 ? "no Node says which runtime it has" : undefined,
    problems: [],
  };
}

/** A combination that is known to break kube-proxy or Canal. */
interface Fault {
  readonly isOf: (kernel: string, state: ClusterState) => boolean;
  /** What happens, and who has reported it. */
  readonly breaks: string;
  readonly fix: (kernel: string, machine: string) => string;
}

const otherKernel = (kernel: string, machine: string): string =>
  `kubectl drain ${machine} --ignore-daemonsets --delete-emptydir-data; on the machine install a newer kernel (apt-get update, ` +
  `apt-get install linux-azure) or an older one, apt-get remove linux-image-${kernel}, and restart; kubectl uncordon ${machine}`;

/**
 * Whose reports were found in public: exactly the kernels that they name, since which of the others of
 * a series has a fault is known of few.
 */
const faults: readonly Fault[] = [
  {
    // 1064 is a roll-up of 1063 that has the same change (LP #2070072).
    isOf: (kernel) => /^6\.8\.0-106[34]-azure$/.test(kernel),
    breaks:
      "NAT rules that kube-proxy has written do not stay in the kernel, and connections cost more processor time (Azure/AgentBaker #9186)",
    fix: otherKernel,
  },
  {
    // xt_MARK was not registered for IPv6: Linux 0bfcb7b71e73, repaired by 306ed1728e84.
    isOf: (kernel) => /^(5\.15\.0-127-generic|6\.8\.0-57-generic|6\.8\.0-1025-azure)$/.test(kernel),
    breaks:
      "ip6tables knows no marks, and kube-proxy in the modes ipvs and iptables cannot write its rules of IPv6 " +
      "(rancher/rke2 #7438 and #8042, actions/runner-images #11985)",
    fix: otherKernel,
  },
  {
    isOf: (kernel, state) => isAtLeast(kernel, [6, 5]) && !isAtLeast(calicoOf(state), [3, 27, 4]),
    breaks:
      "sets that kube-proxy's ipset makes on this kernel cannot be read by the ipset of calico-node before 3.27.4, which then never gets ready (projectcalico/calico #8372)",
    fix: () => "a Canal of this release: pulumi up",
  },
];

/** Whether the kernels of Nodes are known to break what writes rules into them. */
export function kernels(state: ClusterState): Check {
  const found = state.nodes.flatMap(({ metadata: { name: machine }, status }) => {
    const kernel = status?.nodeInfo?.kernelVersion;
    return kernel === undefined ? [] : [{ machine, kernel }];
  });
  const versions = [...new Set(found.map(({ kernel }) => kernel))].sort();
  return {
    name: "kernels",
    saw: `${versions.join(", ")}: nothing is known of these that breaks kube-proxy or Canal`,
    notAsked: versions.length === 0 ? "no Node says which kernel it has" : undefined,
    problems: found.flatMap(({ machine, kernel }) =>
      faults
        .filter(({ isOf }) => isOf(kernel, state))
        .map(({ breaks, fix }) => ({
          machine,
          saw: `kernel ${kernel}: ${breaks}`,
          fix: fix(kernel, machine),
        })),
    ),
  };
}

/** The version of the image of Canal's or Calico's node agent; undefined where there is none. */
const calicoOf = ({ daemonSets }: ClusterState): string | undefined =>
  daemonSets
    .flatMap(({ spec }) => spec?.template?.spec?.containers ?? [])
    .map(({ image }) => /\bcalico\/node:v([\d.]+)/.exec(image)?.[1])
    .find((version) => version !== undefined);

/** Whether a version is this one or newer; what is none is, so that nothing is said of it. */
function isAtLeast(version: string | undefined, least: readonly number[]): boolean {
  const parts = (version ?? "").split(/[.-]/).map(Number);
  if (parts.length < least.length || parts.slice(0, least.length).some(Number.isNaN)) {
    return version === undefined;
  }
  const position = least.findIndex((part, index) => parts[index] !== part);
  return position === -1 || parts[position]! > least[position]!;
}
