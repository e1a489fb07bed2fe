import { stringify } from "yaml";

import type { Body } from "../api";
import { notReadyReason } from "./mirror-pods";

/** Marks the Node of a machine whose kubelet KWOK simulates. */
export const fakeNode = { "kwok.x-k8s.io/node": "fake" };

/** On a Node whose machine has a CNI configuration; without one a kubelet never reports Ready. */
export const cniAnnotation = "zoned.local/cni";

export const networkNotReady = {
  status: "False",
  reason: "KubeletNotReady",
  message:
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized",
};

const ready = {
  status: "True",
  reason: "KubeletReady",
  message: "kubelet is posting ready status",
};

/** When a pod or a Node was shown to KWOK once more. */
export const shownAnnotation = "zoned.local/shown";

/** When a silent Node was given back to KWOK. */
export const heardAnnotation = "zoned.local/heard";

/** The conditions of a Node whose kubelet reports. */
export const nodeConditions = (networkReady: boolean, since: string) => [
  ...[
    ["MemoryPressure", "KubeletHasSufficientMemory"],
    ["DiskPressure", "KubeletHasNoDiskPressure"],
    ["PIDPressure", "KubeletHasSufficientPID"],
  ].map(([type, reason]) => condition({ type, status: "False", reason, message: "" }, since)),
  condition({ type: "Ready", ...(networkReady ? ready : networkNotReady) }, since),
];

const condition = (fields: object, since: string) => ({
  ...fields,
  lastHeartbeatTime: since,
  lastTransitionTime: since,
});

const jq = (key: string, operator: string, ...values: string[]) => ({
  jq: { key, operator, ...(values.length > 0 && { values }) },
});

const stage = (name: string, kind: "Node" | "Pod", spec: object) => ({
  apiVersion: "kwok.x-k8s.io/v1alpha1",
  kind: "Stage",
  metadata: { name },
  spec: { resourceRef: { apiGroup: "v1", kind }, ...spec },
});

const statusPatch = (template: string) => ({
  steps: [{ patch: { subresource: "status", root: "status", template } }],
});

const now = "{{ Now | Quote }}";
const readyStatus = '.status.conditions.[] | select( .type == "Ready" ) | .status';
const hasCni = `.metadata.annotations["${cniAnnotation}"]`;
const notDeleted = jq(".metadata.deletionTimestamp", "DoesNotExist");

const running = `state: {running: {startedAt: ${now}}}`;
const exited = `state: {terminated: {exitCode: 0, reason: Completed, startedAt: ${now}, finishedAt: ${now}}}`;

const conditionsTemplate = (types: readonly string[], status: "True" | "False", reason = "") =>
  types.map(
    (type) =>
      `- {type: ${type}, status: "${status}", reason: "${reason}", lastTransitionTime: ${now}}`,
  );

/** The beginning of a container's status. */
const container = [
  "- name: {{ .name | Quote }}",
  "  image: {{ .image | Quote }}",
  '  imageID: ""',
  "  restartCount: 0",
];

const podRunning = (isReady: boolean): string =>
  [
    "phase: Running",
    `startTime: ${now}`,
    "conditions:",
    ...conditionsTemplate(["PodReadyToStartContainers", "Initialized"], "True"),
    ...(isReady
      ? conditionsTemplate(["ContainersReady", "Ready"], "True")
      : conditionsTemplate(["ContainersReady", "Ready"], "False", notReadyReason)),
    "{{ range .spec.readinessGates }}",
    `- {type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: ${now}}`,
    "{{ end }}",
    "{{ with .spec.initContainers }}",
    "initContainerStatuses:",
    "{{ range . }}",
    ...container,
    "  ready: true",
    `{{ if eq (or .restartPolicy "") "Always" }}`,
    "  started: true",
    `  ${running}`,
    "{{ else }}",
    `  ${exited}`,
    "{{ end }}",
    "{{ end }}",
    "{{ end }}",
    "containerStatuses:",
    "{{ range .spec.containers }}",
    ...container,
    `  ready: ${isReady}`,
    "  started: true",
    `  ${running}`,
    "{{ end }}",
    "{{ with NodeIPWith .spec.nodeName }}",
    "hostIP: {{ . | Quote }}",
    "hostIPs: [{ip: {{ . | Quote }}}]",
    "{{ end }}",
    '{{ with PodIPWith .spec.nodeName (or .spec.hostNetwork false) (or .metadata.uid "") (or .metadata.name "") (or .metadata.namespace "") }}',
    "podIP: {{ . | Quote }}",
    "podIPs: [{ip: {{ . | Quote }}}]",
    "{{ end }}",
  ].join("\n");

const podSucceeded = [
  "phase: Succeeded",
  "conditions:",
  ...conditionsTemplate(["ContainersReady", "Ready"], "False"),
  "containerStatuses:",
  "{{ range .spec.containers }}",
  ...container,
  "  ready: false",
  "  started: false",
  `  ${exited}`,
  "{{ end }}",
].join("\n");

const conditionsOf = (networkReady: boolean) =>
  stringify({ conditions: nodeConditions(networkReady, "NOW") }).replaceAll("NOW", now);

/** Whether a pod runs as processes: what has a container of these images, and is of no DaemonSet. */
const runsAsProcesses = (images: readonly string[], operator: "Exists" | "DoesNotExist") => {
  const isController = `all(.metadata.ownerReferences[]?.kind; . != "DaemonSet")`;
  const isOfImages = `any(.spec.containers[].image; test("(^|/)(${images.join("|")})([:@]|$)"))`;
  return jq(`select(${isController} and ${isOfImages}) | .metadata.name`, operator);
};

const hasClaim = (operator: "Exists" | "DoesNotExist") =>
  jq(".spec.volumes[]? | select(.persistentVolumeClaim) | .name", operator);

const hasVolumes = jq(
  '.status.conditions[]? | select(.type == "PodReadyToStartContainers") | .status',
  "In",
  "True",
);

const podStarts = (name: string, isReady: boolean, ...expressions: object[]) =>
  stage(name, "Pod", {
    selector: {
      matchExpressions: [notDeleted, jq(".status.phase", "In", "Pending"), ...expressions],
    },
    ...statusPatch(podRunning(isReady)),
  });

const stages = [
  stage("node-has-network", "Node", {
    selector: {
      matchAnnotations: fakeNode,
      matchExpressions: [jq(hasCni, "Exists"), jq(readyStatus, "NotIn", "True")],
    },
    ...statusPatch(conditionsOf(true)),
  }),
  stage("node-lacks-network", "Node", {
    selector: {
      matchAnnotations: fakeNode,
      matchExpressions: [jq(hasCni, "DoesNotExist"), jq(readyStatus, "NotIn", "False")],
    },
    ...statusPatch(conditionsOf(false)),
  }),
  stage("node-heartbeat", "Node", {
    selector: { matchAnnotations: fakeNode, matchExpressions: [jq(readyStatus, "In", "True")] },
    delay: { durationMilliseconds: 300_000, jitterDurationMilliseconds: 330_000 },
    ...statusPatch(`conditions:\n- {type: Ready, lastHeartbeatTime: ${now}}`),
  }),
  stage("job-pod-ends", "Pod", {
    selector: {
      matchExpressions: [
        notDeleted,
        jq(".status.phase", "In", "Running"),
        jq(".metadata.ownerReferences.[].kind", "In", "Job"),
      ],
    },
    delay: { durationMilliseconds: 1_000 },
    ...statusPatch(podSucceeded),
  }),
  stage("pod-goes", "Pod", {
    selector: { matchExpressions: [jq(".metadata.deletionTimestamp", "Exists")] },
    steps: [{ delete: true }],
  }),
];

/** KWOK sees a change at once, unless it has missed it. */
const missedAfterMs = 5_000;

/**
 * Whether KWOK has missed a pod, and is to be shown it once more. When it starts it looks at a Node's
 * pods once, as soon as it has asked for the Node's lease, and passes them over where its watch has
 * not shown it that lease yet; it looks again only when a pod changes.
 */
export function wasMissed({ metadata, spec, status }: Body, now: Date): boolean {
  const { annotations, creationTimestamp, deletionTimestamp, ownerReferences } = metadata;
  const startsByItself = !spec.volumes?.some((one: Body) => one.persistentVolumeClaim);
  const isDue =
    deletionTimestamp !== undefined ||
    (status?.phase === "Pending" && startsByItself) ||
    (status?.phase === "Running" && ownerReferences?.some(({ kind }: Body) => kind === "Job"));
  const since: string = annotations?.[shownAnnotation] ?? deletionTimestamp ?? creationTimestamp;
  return isDue && isLongAgo(since, now);
}

/** The same of a Node that has a network and is not Ready. */
export const nodeWasMissed = ({ metadata }: Body, now: Date): boolean =>
  isLongAgo(metadata.annotations?.[shownAnnotation] ?? metadata.creationTimestamp, now);

/** Three times as long as KWOK takes to ask for a lease again. */
const leaseAfterMs = 15_000;

/**
 * Whether KWOK makes a Node that has no lease none any more. Its queue (v0.8.0) holds a name twice where
 * a Node was deleted and made again while its lease was being renewed; it then never comes past the
 * older of the two. One that starts asks for the lease of every Node.
 */
export const wasLost = ({ metadata }: Body, kwokSince: number, now: Date): boolean =>
  [metadata.annotations?.[heardAnnotation] ?? metadata.creationTimestamp, kwokSince].every(
    (since) => isLongAgo(since, now, leaseAfterMs),
  );

const isLongAgo = (since: string | number, now: Date, ms = missedAfterMs): boolean =>
  now.getTime() - new Date(since).getTime() > ms;

/**
 * How KWOK simulates the kubelets: nodes stay NotReady until their CNI is there, pods run, Jobs end.
 *
 * @param processImages names of images whose pods run as processes: others say of them when they are
 *   ready, and of pods with claims when these have volumes
 */
export const kwokConfiguration = (processImages: readonly string[]): string =>
  [
    ...stages,
    ...(processImages.length === 0
      ? [podStarts("pod-starts", true)]
      : [
          podStarts("process-starts", false, runsAsProcesses(processImages, "Exists")),
          ...[
            { name: "pod-starts", when: [hasClaim("DoesNotExist")] },
            { name: "pod-with-volumes-starts", when: [hasClaim("Exists"), hasVolumes] },
          ].map(({ name, when }) =>
            podStarts(name, true, runsAsProcesses(processImages, "DoesNotExist"), ...when),
          ),
        ]),
  ]
    .map((each) => stringify(each))
    .join("---\n");

export const kwokCommand = (
  binary: string,
  kubeconfig: string,
  config: string,
): readonly string[] => [
  binary,
  `--kubeconfig=${kubeconfig}`,
  `--config=${config}`,
  "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
  // KWOK looks at a node that it does not hold yet four times in this span.
  "--node-lease-duration-seconds=20",
];
