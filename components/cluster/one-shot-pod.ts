import { setTimeout as pause } from "node:timers/promises";

import { containerOf, KubernetesApi, KubernetesObject } from "./kubernetes-api";
import { retryTransient } from "./drain";

/** What runs once in a pod on a control plane, with the image of its etcd, which is there. */
interface OneShotPod {
  /** What the pod is called, and what it does. */
  readonly name: string;
  /** One after another, until one fails; in containers of their own. */
  readonly commands: readonly (readonly string[])[];
  /** The machine's, as the containers see it. */
  readonly folder: {
    readonly hostPath: string;
    readonly mountPath: string;
    readonly readOnly: boolean;
  };
  /** Whether it may do on the machine what root may. */
  readonly isPrivileged?: boolean;
  /** How long it may take. */
  readonly seconds: number;
}

/** Longer than any pod of these runs, and anybody reads what it said. */
const forgottenMilliseconds = 3_600_000;

/** A command of a pod has failed. */
export class PodFailed extends Error {
  constructor(
    /** The end of what it said. */
    message: string,
    /** Undefined where none has begun. */
    readonly exitCode: number | undefined,
  ) {
    super(message);
  }
}

const pods = "/api/v1/namespaces/kube-system/pods";
const pollMilliseconds = 1000;

/**
 * Runs commands on a control plane, whatever its Node repels; returns what the last one printed. The
 * pod is deleted after it.
 *
 * @throws PodFailed
 */
export async function runPod(
  api: KubernetesApi,
  node: string,
  { name: what, commands, folder, isPrivileged, seconds }: OneShotPod,
): Promise<string> {
  const etcd = await retryTransient(() => api.find(`${pods}/etcd-${node}`));
  const image = etcd && containerOf(etcd, "etcd")?.image;
  if (image === undefined) throw new Error(`${node} runs no etcd: there is no pod etcd-${node}`);
  await removeForgotten(api, what);
  const name = `${what}-${Date.now().toString(36)}`;
  const { mountPath, readOnly } = folder;
  const containers = commands.map((command, index) => ({
    name: `step-${index + 1}`,
    image,
    imagePullPolicy: "IfNotPresent",
    command,
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: [{ name: "folder", mountPath, readOnly }],
    ...(isPrivileged && { securityContext: { privileged: true } }),
  }));
  await retryTransient(() =>
    api.apply(`${pods}/${name}`, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name,
        namespace: "kube-system",
        labels: { "app.kubernetes.io/name": what },
      },
      spec: {
        nodeName: node,
        hostNetwork: true,
        restartPolicy: "Never",
        activeDeadlineSeconds: seconds,
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        priorityClassName: "system-node-critical",
        tolerations: [{ operator: "Exists" }],
        initContainers: containers.slice(0, -1),
        containers: containers.slice(-1),
        volumes: [{ name: "folder", hostPath: { path: folder.hostPath, type: "Directory" } }],
      },
    }),
  );
  try {
    const pod = await untilEnded(api, name, seconds);
    const last = containers.at(-1)!.name;
    if (pod.status?.phase === "Succeeded") {
      return await retryTransient(() => api.get(`${pods}/${name}/log?container=${last}`));
    }
    const { exitCode, message = JSON.stringify(pod.status) } = failureOf(pod);
    throw new PodFailed(`${what} on ${node} failed: ${message}`, exitCode);
  } finally {
    await retryTransient(() => api.delete(`${pods}/${name}`));
  }
}

/** A program that was killed has not deleted its pod, and nothing else would. */
async function removeForgotten(api: KubernetesApi, what: string): Promise<void> {
  const own = await retryTransient(() =>
    api.list(`${pods}?labelSelector=app.kubernetes.io%2Fname%3D${what}`),
  );
  for (const { metadata } of own) {
    const age = api.now - Date.parse(metadata.creationTimestamp ?? "");
    if (age > forgottenMilliseconds)
      await retryTransient(() => api.delete(`${pods}/${metadata.name}`));
  }
}

async function untilEnded(
  api: KubernetesApi,
  name: string,
  seconds: number,
): Promise<KubernetesObject> {
  for (const until = Date.now() + seconds * 1000; ; await pause(pollMilliseconds)) {
    const pod = await retryTransient(() => api.find(`${pods}/${name}`));
    if (pod === undefined) throw new Error(`somebody deleted the pod kube-system/${name}`);
    if (["Succeeded", "Failed"].includes(pod.status?.phase ?? "")) return pod;
    if (Date.now() > until) {
      throw new PodFailed(
        `the pod kube-system/${name} is ${pod.status?.phase} after ${seconds} s, expected Succeeded`,
        undefined,
      );
    }
  }
}

function failureOf({ status }: KubernetesObject): { exitCode?: number; message?: string } {
  const { initContainerStatuses = [], containerStatuses = [], message } = status ?? {};
  const failed = [...initContainerStatuses, ...containerStatuses]
    .flatMap(({ state }) => state?.terminated ?? [])
    .find(({ exitCode }) => exitCode !== 0);
  return { exitCode: failed?.exitCode, message: failed?.message ?? message };
}
