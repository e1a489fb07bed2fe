import type { Check } from "./check";
import type { ClusterState } from "./cluster-state";

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
