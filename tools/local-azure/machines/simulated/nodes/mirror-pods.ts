import { createHash } from "node:crypto";
import { parse } from "yaml";

import type { Body } from "../api";

const mirror = "kubernetes.io/config.mirror";

export const isMirror = ({ metadata }: Body): boolean =>
  metadata.annotations?.[mirror] !== undefined;

const hashOf = (manifest: string, { metadata }: Body): string =>
  createHash("md5").update(`${manifest}${metadata.name}`).digest("hex");

/** A static pod as its kubelet shows it in the API: what it has made of a manifest on its disk. */
export function mirrorPodOf(manifest: string, node: Body): Body {
  const { metadata, spec } = parse(manifest) as Body;
  const { name, uid } = node.metadata;
  const hash = hashOf(manifest, node);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: `${metadata.name}-${name}`,
      namespace: metadata.namespace,
      labels: metadata.labels,
      annotations: {
        ...metadata.annotations,
        "kubernetes.io/config.hash": hash,
        [mirror]: hash,
        "kubernetes.io/config.seen": new Date().toISOString(),
        "kubernetes.io/config.source": "file",
      },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid, controller: true }],
    },
    spec: { ...spec, nodeName: name, tolerations: [{ operator: "Exists", effect: "NoExecute" }] },
  };
}

export const isOfNode = ({ metadata }: Body, node: Body): boolean =>
  metadata.deletionTimestamp === undefined &&
  metadata.ownerReferences?.[0]?.uid === node.metadata.uid;

/** Whether a mirror pod shows this manifest of its Node. */
export const isOfManifest = (pod: Body, manifest: string, node: Body): boolean =>
  pod.metadata.annotations?.[mirror] === hashOf(manifest, node);

export const isPodReady = ({ status }: Body): boolean =>
  status?.conditions?.some(({ type, status }: Body) => type === "Ready" && status === "True") ??
  false;

/** With which a kubelet calls a running pod not ready. */
export const notReadyReason = "ContainersNotReady";

/** Whether a running pod is called not ready, and not by its own kubelet, which names a reason. */
export const lostHeartbeat = ({ metadata, status }: Body): boolean =>
  metadata.deletionTimestamp === undefined &&
  status?.phase === "Running" &&
  status.conditions?.some(
    ({ type, status, reason }: Body) =>
      type === "Ready" && status === "False" && reason !== notReadyReason,
  );

/** What a kubelet says of a running pod of which these containers are not ready. */
export function readyConditions(unready: readonly string[]): Body[] {
  const ready = unready.length === 0;
  return ["Ready", "ContainersReady"].map((type) => ({
    type,
    status: ready ? "True" : "False",
    reason: ready ? null : notReadyReason,
    message: ready ? null : `containers with unready status: [${unready.join(" ")}]`,
    lastTransitionTime: new Date().toISOString(),
  }));
}

/** What a kubelet reports of a running pod, as a patch of its status. */
export function readiness({ status }: Body, ready: boolean): Body {
  const names = (status.containerStatuses ?? []).map(({ name }: Body) => name as string);
  return {
    status: {
      conditions: readyConditions(ready ? [] : names),
      containerStatuses: status.containerStatuses?.map((one: Body) => ({ ...one, ready })),
    },
  };
}

/** What a kubelet reports of a pod whose containers have ended, as a patch of its status. */
export function endOf(
  { status }: Body,
  { exitCode, output }: { exitCode: number; output: string },
) {
  const finishedAt = new Date().toISOString();
  const terminated = {
    exitCode,
    reason: exitCode === 0 ? "Completed" : "Error",
    startedAt: finishedAt,
    finishedAt,
    // As terminationMessagePolicy FallbackToLogsOnError has it.
    ...(exitCode !== 0 && { message: output }),
  };
  return {
    status: {
      phase: exitCode === 0 ? "Succeeded" : "Failed",
      containerStatuses: status.containerStatuses?.map((one: Body) => ({
        ...one,
        ready: false,
        state: { running: null, terminated },
      })),
    },
  };
}

/** The name of a container's image, without registry and tag. */
export const imageName = ({ image = "" }: Body): string =>
  /([^/:@]+)([:@][^/]*)?$/.exec(image as string)?.[1] ?? "";

/** What a DaemonSet runs on a machine is of that machine. */
export const isOfDaemonSet = ({ metadata }: Body): boolean =>
  (metadata.ownerReferences ?? []).some(({ kind }: Body) => kind === "DaemonSet");
