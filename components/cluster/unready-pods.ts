import type { ContainerStatus, KubernetesApi, KubernetesObject } from "./kubernetes-api";
import { isReady } from "./kubernetes-api";

const shownPods = 3;

/** Why pods are not ready, as their kubelets and the scheduler say it. Those on `silent` Nodes are left out. */
export async function unreadyPods(
  api: KubernetesApi,
  namespace: string,
  selector: string,
  silent: readonly string[],
): Promise<string[]> {
  const labelSelector = encodeURIComponent(selector);
  const pods = await api.list(
    `/api/v1/namespaces/${namespace}/pods?labelSelector=${labelSelector}`,
  );
  const unready = pods.filter(
    (pod) => !isReady(pod) && !silent.includes(pod.spec?.nodeName ?? "none yet"),
  );
  const more = unready.length - shownPods;
  return [
    ...unready.slice(0, shownPods).map(podProblem),
    ...(more > 0 ? [`and ${more} more pods that are not ready`] : []),
  ];
}

function podProblem({ metadata, spec, status }: KubernetesObject): string {
  const { conditions = [], initContainerStatuses = [], containerStatuses = [] } = status ?? {};
  const unplaced = conditions.find((one) => one.type === "PodScheduled" && one.status === "False");
  const why = unplaced
    ? [joined(unplaced.reason, unplaced.message)]
    : [...initContainerStatuses, ...containerStatuses].flatMap(containerProblem);
  const place = spec?.nodeName === undefined ? "" : ` on ${spec.nodeName}`;
  return `pod ${metadata.name}${place}: ${[status?.phase, ...why].join("; ")}`;
}

function containerProblem({ name, ready, state, lastState }: ContainerStatus): string[] {
  const { waiting, terminated = lastState?.terminated } = state ?? {};
  const exitCode = terminated?.exitCode;
  if (ready || (exitCode === 0 && waiting === undefined)) return [];
  const last = exitCode ? [`last exit code ${exitCode}`] : [];
  const why = [joined(waiting?.reason, waiting?.message), ...last].filter((part) => part !== "");
  return [`container ${name}: ${why.join(", ") || "not ready"}`];
}

const joined = (...parts: readonly (string | undefined)[]): string =>
  parts.filter((part) => part).join(": ");
