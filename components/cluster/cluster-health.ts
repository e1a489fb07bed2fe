import { setTimeout as pause } from "node:timers/promises";

import {
  ApiError,
  KubernetesApi,
  KubernetesObject,
  NoAnswer,
  readyCondition,
  withApi,
} from "./kubernetes-api";
import { getEtcdMembers, EtcdMember, etcdctl, ownEndpoint } from "./etcd-member";
import { PodFailed } from "./one-shot-pod";
import { controlPlaneMark } from "../settings/topology";

/** The four pods that the kubelet of a control plane runs from its own disk. */
const staticPods = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/** Beyond a lease's own duration: the answer may have been on its way for a while. */
const graceSeconds = 20;

/** How a cluster is at this moment. */
export interface ClusterHealth {
  /** Why nothing can be said, or nothing may be done, whatever the machines are like. */
  readonly problems: readonly string[];
  /** Whether they are etcd's own, and would also stop each step of a change that is begun all the same. */
  readonly areEtcds?: boolean;
  /** Whether no API server has answered. */
  readonly isSilent?: boolean;
  /** By control plane, what is wrong with it; one that is well is not listed. */
  readonly unhealthy: ReadonlyMap<string, readonly string[]>;
  /** How many members etcd lists; undefined where nobody was asked. */
  readonly members?: number;
  /** Names of etcd members that do not answer, of what is no Node any more. */
  readonly dead?: readonly string[];
}

/** The machines' state in the API. */
export interface Machines {
  readonly nodes: readonly KubernetesObject[];
  /** Static pods of all control planes. */
  readonly pods: readonly KubernetesObject[];
  /** One per kubelet. */
  readonly leases: readonly KubernetesObject[];
  /** Of kube-controller-manager: one, or none. */
  readonly manager: readonly KubernetesObject[];
}

export async function getMachines(api: KubernetesApi): Promise<Machines> {
  const [nodes, pods, leases, manager] = await Promise.all([
    api.list("/api/v1/nodes"),
    api.list("/api/v1/namespaces/kube-system/pods?labelSelector=tier%3Dcontrol-plane"),
    api.list("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"),
    api.list(
      "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?fieldSelector=metadata.name%3Dkube-controller-manager",
    ),
  ]);
  return { nodes, pods, leases, manager };
}

/** What is wrong with a machine's Node and its kubelet, at the API server's time. */
export function nodeProblems(
  name: string,
  { nodes, leases }: Pick<Machines, "nodes" | "leases">,
  now: number,
): string[] {
  const node = named(nodes, name);
  if (node === undefined) return ["it has no Node"];
  const lease = staleness(named(leases, name), now);
  return [
    ...notReady(node).map((why) => `its Node is not Ready${why}`),
    ...(lease === undefined
      ? []
      : [`its kubelet ${lease}, so that it has stopped or cannot reach the API`]),
  ];
}

/** What is wrong with a control plane's static pods. */
export const staticPodProblems = (name: string, { pods }: Pick<Machines, "pods">): string[] =>
  staticPods.flatMap((component) => {
    const pod = named(pods, `${component}-${name}`);
    return pod === undefined
      ? [`it runs no ${component}`]
      : notReady(pod).map((why) => `its ${component} is not ready${why}`);
  });

export function managerProblems({ manager }: Pick<Machines, "manager">, now: number): string[] {
  const stale = staleness(manager[0], now);
  return stale === undefined
    ? []
    : [
        `kube-controller-manager ${stale}: no controller manager runs, so that no Node or pod would be looked after`,
      ];
}

/**
 * Whether etcd keeps its majority while a control plane is made anew that is not well: not of two members,
 * and not beside another one that is not well.
 */
export const isSpared = (
  sick: readonly unknown[],
  members: number,
  problems: readonly unknown[],
): boolean => sick.length === 1 && members > 2 && problems.length === 0;

/** A control plane that there has to be. */
export interface ExpectedControlPlane {
  /** Of its Node, and of its member of etcd. */
  readonly name: string;
  /** By which a member is known that has not started yet. */
  readonly address?: string;
  /** Whether its machine is gone, or is about to go, so that nothing is asked of it. */
  readonly isGone?: boolean;
}

/**
 * Asks the API how each control plane is: its Node, its kubelet's lease, its static pods, and its
 * member of etcd. So is any other that the API has a Node of: it is a member until it has left.
 *
 * kubeadm's etcd pod is ready by etcd's own /readyz: the member is no learner, has no corrupt data,
 * and sees a leader. Each member is asked as well, since a pod is Ready until its kubelet says
 * otherwise. Whether etcd also takes writes, which it does not while the alarm NOSPACE is
 * raised, is tried: a Lease of this program's own in kube-system is renewed. Members that belong to
 * no control plane are in etcd's own list alone.
 *
 * @param kubeconfig as kubeconfig.ts renders it
 */
export async function getClusterHealth(
  kubeconfig: string,
  expected: readonly ExpectedControlPlane[],
): Promise<ClusterHealth> {
  const since = Date.now();
  try {
    return await getHealthOnce(kubeconfig, expected);
  } catch (error) {
    if (!(await isToBeAskedAgain(error, expected.length, since))) return unknownHealth(error);
    return getClusterHealthOnce(kubeconfig, expected);
  }
}

/** The same, for what asks again by itself. */
export const getClusterHealthOnce = (
  kubeconfig: string,
  expected: readonly ExpectedControlPlane[],
): Promise<ClusterHealth> => getHealthOnce(kubeconfig, expected).catch(unknownHealth);

/** The balancer's probe fails twice, 5 s apart, before new connections go to other control planes. */
const leftOutMilliseconds = 12_000;

/**
 * Whether one API server of several may be what has not answered; then only after the balancer has left it out.
 *
 * @param since when it was asked
 */
export async function isToBeAskedAgain(
  error: unknown,
  controlPlanes: number,
  since: number,
): Promise<boolean> {
  if (controlPlanes === 1 || !isOfOneApiServer(error)) return false;
  await pause(since + leftOutMilliseconds - Date.now());
  return true;
}

/**
 * An API server whose own etcd is gone keeps its requests, or answers that it is not ready; one that ends breaks its
 * connections, and takes no new ones. A machine that is down says nothing, for which undici waits ten seconds.
 */
const isOfOneApiServer = (error: unknown): boolean =>
  (error instanceof NoAnswer && ofOneApiServer.includes(error.code)) ||
  (error instanceof ApiError && error.status >= 500);

const ofOneApiServer = [
  "silence",
  "ECONNRESET",
  "UND_ERR_SOCKET",
  "ECONNREFUSED",
  "UND_ERR_CONNECT_TIMEOUT",
];

function unknownHealth(error: unknown): ClusterHealth {
  const { message } = error as Error;
  // etcd's own words while its alarm NOSPACE is raised.
  return {
    problems: [message],
    areEtcds: message.includes("database space exceeded"),
    isSilent: error instanceof NoAnswer,
    unhealthy: new Map(),
  };
}

const getHealthOnce = (
  kubeconfig: string,
  expected: readonly ExpectedControlPlane[],
): Promise<ClusterHealth> =>
  withApi(kubeconfig, async (api) => {
    await api.get("/readyz");
    await tryWrite(api);
    const machines = await getMachines(api);
    const others = machines.nodes
      .filter(({ metadata }) => metadata.labels?.[controlPlaneMark] !== undefined)
      .map(({ metadata }): ExpectedControlPlane => ({ name: metadata.name }))
      .filter(({ name }) => !expected.some((one) => one.name === name));
    const all = [...expected, ...others];
    const reasons = new Map(
      all.map(({ name, isGone }) => [
        name,
        isGone
          ? []
          : [...nodeProblems(name, machines, api.now), ...staticPodProblems(name, machines)],
      ]),
    );
    const well = all.filter(({ name, isGone }) => !isGone && reasons.get(name)!.length === 0);
    const strangers = [];
    const dead = [];
    let count: number | undefined;
    for (const { name: by } of all.length > 1 ? well : []) {
      try {
        const { members, unhealthy } = await getEtcdMembers(api, by);
        count = members.length;
        for (const member of members) {
          const owner = all.find((one) => isMember(one, member));
          if (owner === undefined) {
            strangers.push(strangerProblem(member, by));
            if (member.hasStarted && unhealthy.has(member.clientUrl)) dead.push(member.name);
          } else if (!owner.isGone) {
            reasons.get(owner.name)!.push(...memberProblems(member, unhealthy));
          }
        }
        break;
      } catch (error) {
        if (!(error instanceof PodFailed)) throw error;
        reasons.get(by)!.push(`its etcd cannot be asked: ${error.message}`);
      }
    }
    return {
      problems: [...managerProblems(machines, api.now), ...strangers],
      areEtcds: strangers.length > 0,
      unhealthy: new Map([...reasons].filter(([, some]) => some.length > 0)),
      members: count,
      dead,
    };
  });

/** Whether this member of etcd is a control plane's. */
export const isMember = ({ name, address }: ExpectedControlPlane, member: EtcdMember): boolean =>
  member.name === name ||
  (member.name === "" && address !== undefined && member.peerUrl === `https://${address}:2380`);

const memberProblems = (
  { id, hasStarted, isLearner, clientUrl }: EtcdMember,
  unhealthy: ReadonlyMap<string, string>,
): string[] => [
  ...(unhealthy.has(clientUrl) ? [`its etcd is not healthy: ${unhealthy.get(clientUrl)}`] : []),
  ...(hasStarted ? [] : [`its etcd member ${id} has not started`]),
  ...(isLearner ? ["its etcd member is a learner, which has no vote yet"] : []),
];

/** What a failed join has left counts for etcd's majority, and nobody else would name it. */
function strangerProblem({ id, name, hasStarted, peerUrl }: EtcdMember, by: string): string {
  const member = hasStarted
    ? `${id}, named ${name},`
    : `${id} at ${peerUrl}, which has not started,`;
  const remove = etcdctl([ownEndpoint], "member", "remove", id).join(" ");
  return (
    `etcd member ${member} belongs to no control plane that is a Node, and would count against the others. ` +
    `If its machine is gone or has never joined: kubectl --namespace kube-system exec etcd-${by} -- ${remove}`
  );
}

export const named = (objects: readonly KubernetesObject[], name: string) =>
  objects.find(({ metadata }) => metadata.name === name);

/** Writes an object to etcd that nothing depends on. */
export async function tryWrite(api: KubernetesApi): Promise<void> {
  const name = "zoned-health-check";
  const namespace = "kube-system";
  await api.apply(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`, {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name, namespace },
    spec: { holderIdentity: "zoned", renewTime: new Date().toISOString().replace("Z", "000Z") },
  });
}

/** Nothing of what is Ready; else one reason, which may be empty. */
export function notReady(object: KubernetesObject): string[] {
  const ready = readyCondition(object);
  if (ready?.status === "True") return [];
  return [ready?.message ? `: ${ready.message}` : ""];
}

/** The problem of a lease that is not renewed any more. */
function staleness(lease: KubernetesObject | undefined, now: number): string | undefined {
  const { renewTime, leaseDurationSeconds = 40 } = lease?.spec ?? {};
  if (renewTime === undefined) return "holds no lease";
  const age = Math.round((now - Date.parse(renewTime)) / 1000);
  return age <= leaseDurationSeconds + graceSeconds
    ? undefined
    : `last renewed its lease ${age} s ago`;
}
