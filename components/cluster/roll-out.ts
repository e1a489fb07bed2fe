import { setTimeout as pause } from "node:timers/promises";

import { retryTransient } from "./drain";
import {
  type Condition,
  type ContainerStatus,
  isReady,
  type KubernetesApi,
  type KubernetesObject,
  readyCondition,
  withApi,
} from "./kubernetes-api";

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

/** Something whose pods are replaced one after another. */
export interface RolledOut {
  readonly kind: "DaemonSet" | "Deployment";
  readonly namespace: string;
  readonly name: string;
}

interface Live {
  readonly metadata: { readonly generation: number };
  readonly spec: {
    readonly replicas?: number;
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly desiredNumberScheduled?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberAvailable?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
    readonly conditions?: readonly Condition[];
  };
}

/** Of one target: how many pods there are to be, are of its newest version, and are available. */
interface Progress {
  readonly target: RolledOut;
  readonly selector: string;
  readonly isSeen: boolean;
  readonly wanted: number;
  readonly updated: number;
  readonly available: number;
  /** Of earlier versions, where a Deployment makes new ones first; they are available too. */
  readonly old: number;
  /** Why no pod of it can be made at all, as the API server says it. */
  readonly refusal?: string;
}

const pollMilliseconds = 2000;

/** kube-proxy may take ten minutes for its first rules, and pulls its image before. */
const standstillMinutes = 15;

/** A Node that has just joined is Ready within it. */
const joinMilliseconds = 60_000;

/**
 * Ends when all pods of these are available and of the newest version, but for those on Nodes that are
 * not Ready: the machine is off, broken or about to be removed, and a DaemonSet wants a pod there all the
 * same. Such a pod is also the one that may be unavailable, so that a DaemonSet that changes replaces no
 * other one until the Node is Ready or gone; that is not waited for either.
 *
 * There is no limit but that of standing still: pods are replaced node by node, on however many nodes.
 *
 * @throws Error that says what has stood still, and why its pods are not ready
 */
export const awaitRollOuts = (
  kubeconfig: string,
  targets: readonly RolledOut[],
  patienceMilliseconds = standstillMinutes * 60_000,
): Promise<void> =>
  withApi(kubeconfig, async (api) => {
    let furthest = -1;
    let since = Date.now();
    for (;;) {
      const progress = await retryTransient(() =>
        Promise.all(targets.map((target) => progressOf(api, target))),
      );
      if (lacking(progress, 0).length === 0) return;
      const silent = await retryTransient(() => silentNodes(api));
      const lacks = lacking(progress, silent.length);
      if (lacks.length === 0) return console.error(silentText(silent));
      const done = progress
        .filter(({ isSeen }) => isSeen)
        .reduce((sum, one) => sum + one.updated + one.available, 0);
      if (done > furthest) {
        furthest = done;
        since = Date.now();
      }
      if (Date.now() - since > patienceMilliseconds) {
        throw new Error(await standstillText(api, lacks, silent));
      }
      await pause(pollMilliseconds);
    }
  });

async function progressOf(api: KubernetesApi, target: RolledOut): Promise<Progress> {
  const { kind, namespace, name } = target;
  const path = `/apis/apps/v1/namespaces/${namespace}/${kind.toLowerCase()}s/${name}`;
  const { metadata, spec, status = {} } = JSON.parse(await api.get(path)) as Live;
  const [wanted, updated, available] =
    kind === "DaemonSet"
      ? [status.desiredNumberScheduled, status.updatedNumberScheduled, status.numberAvailable]
      : [spec.replicas, status.updatedReplicas, status.availableReplicas];
  return {
    target,
    selector: Object.entries(spec.selector.matchLabels)
      .map(([key, value]) => `${key}=${value}`)
      .join(),
    isSeen: (status.observedGeneration ?? 0) >= metadata.generation,
    wanted: wanted ?? 0,
    updated: updated ?? 0,
    available: available ?? 0,
    old: kind === "DaemonSet" ? 0 : (status.replicas ?? 0) - (status.updatedReplicas ?? 0),
    refusal: status.conditions?.find(({ type }) => type === "ReplicaFailure")?.message,
  };
}

/** Those that have to be waited for while so many Nodes are not Ready. Pods of a Deployment go elsewhere. */
const lacking = (all: readonly Progress[], silent: number): Progress[] =>
  all.filter(({ target, isSeen, wanted, updated, available, old }) => {
    const excused = target.kind === "DaemonSet" ? silent : 0;
    const isUpdated = (updated >= wanted && old <= 0) || excused > 0;
    return !isSeen || !isUpdated || available < wanted - excused;
  });

async function silentNodes(api: KubernetesApi): Promise<string[]> {
  const nodes = await api.list("/api/v1/nodes");
  return nodes
    .filter((node) => {
      const { status, lastTransitionTime = "" } = readyCondition(node) ?? {};
      return status !== "True" && !(api.now - Date.parse(lastTransitionTime) < joinMilliseconds);
    })
    .map(({ metadata }) => metadata.name);
}

const silentText = (names: readonly string[]): string =>
  `pods on ${names.join(", ")} were not waited for, since the Node is not Ready: ` +
  "a DaemonSet that this update changes goes on when it is Ready again or gone";

async function standstillText(
  api: KubernetesApi,
  lacks: readonly Progress[],
  silent: readonly string[],
): Promise<string> {
  const texts = lacks.map(async ({ target, selector, wanted, updated, available, refusal }) => {
    const { kind, namespace, name } = target;
    // A help only: the text is as true without them.
    const unready = await unreadyPods(api, namespace, selector, silent).catch(() => []);
    const reasons = [...(refusal === undefined ? [] : [refusal]), ...unready];
    return (
      `${kind} ${namespace}/${name} has stood still for ${standstillMinutes} minutes: expected ${wanted} pods, ` +
      `got ${updated} of its newest version, and ${available} available` +
      (reasons.length > 0 ? `:\n${reasons.map((reason) => `  - ${reason}\n`).join("")}` : ". ") +
      `See why by kubectl --namespace ${namespace} describe pods --selector ${selector}, then run pulumi up again, which waits for it again`
    );
  });
  return (await Promise.all(texts)).join("\n");
}
