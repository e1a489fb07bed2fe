import { createHash } from "node:crypto";

import { parse } from "yaml";

type Body = Record<string, any>;

const mirror = "kubernetes.io/config.mirror";

export const isMirror = ({ metadata }: Body): boolean =>
  metadata.annotations?.[mirror] !== undefined;

/** A static pod as its kubelet shows it in the API: what it has made of a manifest on its disk. */
export function mirrorPodOf(manifest: string, node: Body): Body {
  const { metadata, spec } = parse(manifest) as Body;
  const { name, uid } = node.metadata;
  const hash = createHash("md5").update(`${manifest}${name}`).digest("hex");
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

export const isPodReady = ({ status }: Body): boolean =>
  status?.conditions?.some(({ type, status }: Body) => type === "Ready" && status === "True") ??
  false;

const notReadyReason = "ContainersNotReady";

/** Whether a running pod is called not ready, and not by its own kubelet, which names a reason. */
export const wasUnheard = ({ metadata, status }: Body): boolean =>
  metadata.deletionTimestamp === undefined &&
  status?.phase === "Running" &&
  status.conditions?.some(
    ({ type, status, reason }: Body) =>
      type === "Ready" && status === "False" && reason !== notReadyReason,
  );

/** What a kubelet reports of a running pod, as a patch of its status. */
export function readiness({ status }: Body, ready: boolean): Body {
  const names = status.containerStatuses?.map(({ name }: Body) => name).join(" ");
  const condition = (type: string) => ({
    type,
    status: ready ? "True" : "False",
    reason: ready ? null : notReadyReason,
    message: ready ? null : `containers with unready status: [${names}]`,
    lastTransitionTime: new Date().toISOString(),
  });
  return {
    status: {
      conditions: ["Ready", "ContainersReady"].map(condition),
      containerStatuses: status.containerStatuses?.map((one: Body) => ({ ...one, ready })),
    },
  };
}
