import { setTimeout as pause } from "node:timers/promises";

import { KubernetesApi, KubernetesObject } from "../kubernetes-api";
import { insist } from "./drain";

/** A member as `etcdctl member list` prints it. */
export interface EtcdMember {
  /** Hexadecimal: as a number of JSON it has more digits than JavaScript keeps. */
  readonly id: string;
  readonly hasStarted: boolean;
  /** Empty until it has started. */
  readonly name: string;
  readonly clientUrl: string;
  readonly isLearner: boolean;
}

const pods = "/api/v1/namespaces/kube-system/pods";
const certificates = "/etc/kubernetes/pki/etcd";
const endsWithinMilliseconds = 120_000;
const pollMilliseconds = 1000;

/** The command, as it runs in a pod of etcd. */
export const etcdctl = (
  endpoints: readonly string[],
  ...args: readonly string[]
): readonly string[] => [
  "etcdctl",
  `--endpoints=${endpoints.join(",")}`,
  `--cacert=${certificates}/ca.crt`,
  `--cert=${certificates}/healthcheck-client.crt`,
  `--key=${certificates}/healthcheck-client.key`,
  ...args,
];

export const ownEndpoint = "https://127.0.0.1:2379";

/** All members, as etcd of one control plane lists them. */
export async function listMembers(api: KubernetesApi, node: string): Promise<EtcdMember[]> {
  const lines = await run(api, node, [etcdctl([ownEndpoint], "member", "list")]);
  return parseMembers(lines);
}

export const parseMembers = (lines: string): EtcdMember[] =>
  lines
    .trim()
    .split("\n")
    .map((line) => {
      const [id = "", status, name = "", , clientUrl = "", isLearner] = line.split(", ");
      return {
        id,
        hasStarted: status === "started",
        name,
        clientUrl: clientUrl.split(",")[0]!,
        isLearner: isLearner?.trim() === "true",
      };
    });

/**
 * Removes a control plane's member from etcd, by another control plane, which leads etcd from then
 * on: a leader that is removed would leave its members without one for an election.
 *
 * A pod, and not `exec` into etcd's own: it needs no streaming connection to a kubelet, whose
 * certificate nobody verifies, and its result is kept until somebody has read it. The image is
 * there, the certificates are kubeadm's own, and no port is opened.
 */
export async function removeMember(api: KubernetesApi, machine: string, by: string): Promise<void> {
  const members = await listMembers(api, by);
  const member = members.find(({ name }) => name === machine);
  const leader = members.find(({ name }) => name === by);
  if (member === undefined) return;
  if (leader === undefined) {
    throw new Error(`etcd of ${by} does not list ${by} itself: ${JSON.stringify(members)}`);
  }
  // etcdctl asks each in turn which of them leads; the one that goes may be dead.
  const others = members.filter(({ id, hasStarted }) => hasStarted && id !== member.id);
  const endpoints = [...others, ...(member.hasStarted ? [member] : [])].map((one) => one.clientUrl);
  await run(api, by, [
    etcdctl(endpoints, "move-leader", leader.id),
    etcdctl([ownEndpoint], "member", "remove", member.id),
  ]);
}

/** Runs commands one after another in a pod on this control plane; returns what the last printed. */
async function run(
  api: KubernetesApi,
  node: string,
  commands: readonly (readonly string[])[],
): Promise<string> {
  const etcd = await insist(() => api.find(`${pods}/etcd-${node}`));
  const image = etcd?.spec?.containers?.[0]?.image;
  if (image === undefined) throw new Error(`${node} runs no etcd: there is no pod etcd-${node}`);
  const name = `zoned-etcdctl-${Date.now().toString(36)}`;
  const containers = commands.map((command, index) => ({
    name: `step-${index + 1}`,
    image,
    imagePullPolicy: "IfNotPresent",
    command,
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: [{ name: "certificates", mountPath: certificates, readOnly: true }],
  }));
  await insist(() =>
    api.apply(`${pods}/${name}`, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name,
        namespace: "kube-system",
        labels: { "app.kubernetes.io/name": "zoned-etcdctl" },
      },
      spec: {
        nodeName: node,
        hostNetwork: true,
        restartPolicy: "Never",
        activeDeadlineSeconds: endsWithinMilliseconds / 1000,
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        priorityClassName: "system-node-critical",
        tolerations: [{ operator: "Exists" }],
        initContainers: containers.slice(0, -1),
        containers: containers.slice(-1),
        volumes: [{ name: "certificates", hostPath: { path: certificates, type: "Directory" } }],
      },
    }),
  );
  try {
    const pod = await untilEnded(api, name);
    const last = containers.at(-1)!.name;
    if (pod.status?.phase === "Succeeded") {
      return await insist(() => api.get(`${pods}/${name}/log?container=${last}`));
    }
    throw new Error(`etcdctl on ${node} failed: ${failureOf(pod)}`);
  } finally {
    await insist(() => api.delete(`${pods}/${name}`));
  }
}

async function untilEnded(api: KubernetesApi, name: string): Promise<KubernetesObject> {
  for (const until = Date.now() + endsWithinMilliseconds; ; await pause(pollMilliseconds)) {
    const pod = await insist(() => api.find(`${pods}/${name}`));
    if (pod === undefined) throw new Error(`somebody deleted the pod kube-system/${name}`);
    if (["Succeeded", "Failed"].includes(pod.status?.phase ?? "")) return pod;
    if (Date.now() > until) {
      throw new Error(
        `the pod kube-system/${name} is ${pod.status?.phase} after ${endsWithinMilliseconds / 1000} s, expected Succeeded`,
      );
    }
  }
}

function failureOf({ status }: KubernetesObject): string {
  const { initContainerStatuses = [], containerStatuses = [], message } = status ?? {};
  const failed = [...initContainerStatuses, ...containerStatuses]
    .flatMap(({ state }) => state?.terminated ?? [])
    .find(({ exitCode }) => exitCode !== 0);
  return failed?.message ?? message ?? JSON.stringify(status);
}
