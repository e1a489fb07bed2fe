import { setTimeout as pause } from "node:timers/promises";

import { mostDrainMinutes } from "../settings/times";
import {
  ApiError,
  KubernetesApi,
  KubernetesObject,
  NoAnswer,
  readyCondition,
} from "./kubernetes-api";

interface Drain {
  readonly api: KubernetesApi;
  /** Name of the Node. */
  readonly node: string;
  /** Whether its machine is upgraded next, and not restarted or deleted by Azure. */
  readonly isForUpgrade?: boolean;
  /** How long budgets and pods may hold the machine. */
  readonly minutes: number;
}

/**
 * On a Node that this program has cordoned: what of it is to be taken back, and nothing else, and whether that is for an
 * upgrade. The machine does that when its bootstrap step ends well; see cloud-init/bootstrap/drain.sh.
 */
export const drainMark = "zoned/drained";

export const excluded = "node.kubernetes.io/exclude-from-external-load-balancers";

/** As often as `kubectl drain` asks. */
const pollMilliseconds = 1000;

const volumesMilliseconds = 120_000;

/** A runtime that is slow is over by then. */
const unreadyMilliseconds = 300_000;

export const nodePath = (name: string): string => `/api/v1/nodes/${name}`;

/** Whether an answer may be another one in a moment: an API server restarts, or is left out. */
export const isTransient = (error: unknown): boolean =>
  error instanceof NoAnswer ||
  (error instanceof ApiError && (error.status >= 500 || error.status === 429));

/** Asks again for two minutes where waiting may help. */
export async function retryTransient<T>(action: () => Promise<T>): Promise<T> {
  for (const until = Date.now() + 120_000; ; await pause(pollMilliseconds)) {
    try {
      return await action();
    } catch (error) {
      if (!isTransient(error) || Date.now() > until) throw error;
    }
  }
}

/**
 * Empties a Node as `kubectl drain` does: no new pods, and those that are there are evicted as
 * their budgets allow, until they are gone. Pods of DaemonSets and static pods stay.
 *
 * A Node that is gone or whose kubelet is silent, or becomes so, is not waited for: nobody there would end a pod.
 *
 * @throws Error that names pods and budgets after `minutes`; the Node takes pods again then
 */
export async function drain({ api, node, minutes, isForUpgrade = false }: Drain): Promise<void> {
  if (!(await retryTransient(() => isAlive(api, node)))) return;
  await retryTransient(() => cordon(api, node, isForUpgrade));
  const until = Date.now() + minutes * 60_000;
  for (let left = await retryTransient(() => evictAll(api, node)); left.length > 0;) {
    if (!(await retryTransient(() => isAlive(api, node)))) return;
    if (Date.now() > until) {
      await retryTransient(() => uncordon(api, node));
      throw new Error(
        `${node} could not be drained within ${minutes} minutes (drainMinutes); these pods are still on it:` +
          `${left.map(({ name, reason }) => `\n  - ${name}: ${reason}`).join("")}\n` +
          "Nothing was deleted, and the node takes pods again. Make room for the pods elsewhere or change what holds them, " +
          "then run pulumi up again" +
          (minutes < mostDrainMinutes
            ? `; or wait longer: pulumi config set drainMinutes ${Math.min(minutes * 4, mostDrainMinutes)}`
            : ""),
      );
    }
    await pause(pollMilliseconds);
    left = await retryTransient(() => evictAll(api, node));
  }
  await untilDetached(api, node);
}

/** A kubelet says itself that it is not Ready, for a moment or because it can end no pod any more. */
async function isAlive(api: KubernetesApi, name: string): Promise<boolean> {
  const node = await api.find(nodePath(name));
  const { status, lastTransitionTime = "" } = (node && readyCondition(node)) ?? {};
  const isNew = api.now - Date.parse(lastTransitionTime) < unreadyMilliseconds;
  return status === "True" || (status === "False" && isNew);
}

/** What others have set stays when this program reverts its own change. */
async function cordon(api: KubernetesApi, name: string, isForUpgrade: boolean): Promise<void> {
  const node = await api.find(nodePath(name));
  if (node === undefined) return;
  // Of an earlier drain that was killed, for another reason perhaps; somebody may have uncordoned the Node since.
  const mark = node.metadata.annotations?.[drainMark];
  const own = new Set([
    ...(mark?.split(" ") ?? []),
    ...(node.spec?.unschedulable ? [] : ["unschedulable"]),
    ...(node.metadata.labels?.[excluded] === undefined ? ["excluded"] : []),
    ...(isForUpgrade ? ["upgrade"] : []),
  ]);
  await api.merge(nodePath(name), {
    metadata: { annotations: { [drainMark]: [...own].join(" ") }, labels: { [excluded]: "" } },
    spec: { unschedulable: true },
  });
}

/** Uncordons a Node, but only undoes this program's own cordon. */
async function uncordon(api: KubernetesApi, name: string): Promise<void> {
  const node = await api.find(nodePath(name));
  const own = node?.metadata.annotations?.[drainMark]?.split(" ");
  if (own === undefined) return;
  await api.merge(nodePath(name), {
    metadata: {
      annotations: { [drainMark]: null },
      ...(own.includes("excluded") && { labels: { [excluded]: null } }),
    },
    ...(own.includes("unschedulable") && { spec: { unschedulable: null } }),
  });
}

interface Held {
  readonly name: string;
  readonly reason: string;
}

const stays = ({ metadata, status }: KubernetesObject): boolean =>
  metadata.annotations?.["kubernetes.io/config.mirror"] !== undefined ||
  metadata.ownerReferences?.some(({ kind, controller }) => controller && kind === "DaemonSet") ===
    true ||
  ["Succeeded", "Failed"].includes(status?.phase ?? "");

/** Asks for every pod's eviction; returns those that are still there, and why. */
async function evictAll(api: KubernetesApi, node: string): Promise<Held[]> {
  const pods = await api.list(`/api/v1/pods?fieldSelector=spec.nodeName%3D${node}`);
  const held = await Promise.all(pods.filter((pod) => !stays(pod)).map((pod) => evict(api, pod)));
  return held.flatMap((one) => one ?? []);
}

async function evict(
  api: KubernetesApi,
  { metadata }: KubernetesObject,
): Promise<Held | undefined> {
  const { name: pod, namespace, deletionTimestamp } = metadata;
  const name = `${namespace}/${pod}`;
  if (deletionTimestamp !== undefined) {
    return { name, reason: `it was to end by ${deletionTimestamp} and is still there` };
  }
  try {
    await api.create(`/api/v1/namespaces/${namespace}/pods/${pod}/eviction`, {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name: pod, namespace },
    });
    return { name, reason: "it was evicted and has not ended yet" };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error.status === 404 ? undefined : { name, reason: reasonOf(error) };
  }
}

/** The API names the budget in the causes of its answer. */
function reasonOf({ message, text }: ApiError): string {
  try {
    const { message: summary, details } = JSON.parse(text) as {
      message: string;
      details?: { causes?: readonly { message: string }[] };
    };
    return [summary, ...(details?.causes ?? []).map((cause) => cause.message)].join(" ");
  } catch {
    return message;
  }
}

/** A volume that is attached to a machine that is gone keeps its next pod waiting for minutes. */
async function untilDetached(api: KubernetesApi, node: string): Promise<void> {
  for (const until = Date.now() + volumesMilliseconds; Date.now() < until;) {
    const attachments = await retryTransient(() =>
      api.list("/apis/storage.k8s.io/v1/volumeattachments"),
    );
    if (!attachments.some(({ spec }) => spec?.nodeName === node)) return;
    await pause(pollMilliseconds);
  }
}
