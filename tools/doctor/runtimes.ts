import type { Check } from "./check";
import type { ClusterState } from "./cluster-state";

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
