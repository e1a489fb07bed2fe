import { KubernetesApi } from "./kubernetes-api";
import { PodFailed, runPod } from "./one-shot-pod";

/** A member as `etcdctl member list` prints it. */
export interface EtcdMember {
  /** Hexadecimal: as a number of JSON it has more digits than JavaScript keeps. */
  readonly id: string;
  readonly hasStarted: boolean;
  /** Empty until it has started. */
  readonly name: string;
  /** Such as `https://172.16.1.4:2380`. */
  readonly peerUrl: string;
  readonly clientUrl: string;
  readonly isLearner: boolean;
}

const certificates = "/etc/kubernetes/pki/etcd";

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

/** Runs `etcdctl`, once or several times, on this control plane; returns what the last one printed. */
const run = (
  api: KubernetesApi,
  node: string,
  commands: readonly (readonly string[])[],
): Promise<string> =>
  runPod(api, node, {
    name: "zoned-etcdctl",
    commands,
    folder: { hostPath: certificates, mountPath: certificates, readOnly: true },
    seconds: 120,
  });

const list = etcdctl([ownEndpoint], "member", "list");

/** All members, as etcd of one control plane lists them. */
const listMembers = async (api: KubernetesApi, node: string): Promise<EtcdMember[]> =>
  parseMembers(await run(api, node, [list]));

/**
 * All members, and why some do not serve, by client URL: each is asked by itself. That the pod of a
 * member is Ready says how it was: its kubelet cannot report while the API server that the balancer
 * gave it is the one beside an etcd that has stopped.
 *
 * @throws PodFailed when etcd of this control plane lists no members
 */
export async function getEtcdMembers(
  api: KubernetesApi,
  node: string,
): Promise<{
  readonly members: readonly EtcdMember[];
  readonly unhealthy: ReadonlyMap<string, string>;
}> {
  const health = etcdctl([ownEndpoint], "--command-timeout=20s", "endpoint", "health", "--cluster");
  try {
    return { members: parseMembers(await run(api, node, [health, list])), unhealthy: new Map() };
  } catch (error) {
    const unhealthy = error instanceof PodFailed ? unhealthyIn(error.message) : new Map();
    if (unhealthy.size === 0) throw error;
    return { members: await listMembers(api, node), unhealthy };
  }
}

/** As `etcdctl endpoint health` prints it, with a line for each. */
const unhealthyIn = (lines: string): Map<string, string> =>
  new Map(
    [...lines.matchAll(/(https:\S+) is unhealthy: (.*)/g)].map(([, url, why]) => [url!, why!]),
  );

/**
 * The versions that members report, in the order of their client URLs; by a pod on one control plane.
 *
 * @throws PodFailed when one of them does not answer
 */
export async function getEtcdVersions(
  api: KubernetesApi,
  node: string,
  clientUrls: readonly string[],
): Promise<string[]> {
  const status = ["--command-timeout=20s", "--write-out=json", "endpoint", "status"];
  const said = await run(api, node, [etcdctl(clientUrls, ...status)]);
  const endpoints = JSON.parse(said) as { Endpoint: string; Status: { version: string } }[];
  const versions = new Map(endpoints.map(({ Endpoint, Status }) => [Endpoint, Status.version]));
  return clientUrls.map((url) => versions.get(url)!);
}

export const parseMembers = (lines: string): EtcdMember[] =>
  lines
    .trim()
    .split("\n")
    .map((line) => {
      const [id = "", status, name = "", peerUrl = "", clientUrl = "", isLearner] =
        line.split(", ");
      return {
        id,
        hasStarted: status === "started",
        name,
        peerUrl: peerUrl.split(",")[0]!,
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
  const { members, unhealthy } = await getEtcdMembers(api, by);
  const member = members.find(({ name }) => name === machine);
  const leader = members.find(({ name }) => name === by);
  if (member === undefined) return;
  if (leader === undefined) {
    throw new Error(`etcd of ${by} does not list ${by} itself: ${JSON.stringify(members)}`);
  }
  // etcdctl asks each in turn which of them leads, and ends at the first one that does not answer.
  const others = members.filter(
    ({ id, hasStarted, clientUrl }) => hasStarted && id !== member.id && !unhealthy.has(clientUrl),
  );
  const endpoints = [...others, member].map((one) => one.clientUrl);
  await run(api, by, [
    etcdctl(endpoints, "move-leader", leader.id),
    etcdctl([ownEndpoint], "member", "remove", member.id),
  ]);
}
