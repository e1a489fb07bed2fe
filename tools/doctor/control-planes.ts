import {
  isSpared,
  managerProblems,
  named,
  nodeProblems,
  notReady,
  staticPodProblems,
} from "../../components/cluster/cluster-health";
import { containerOf } from "../../components/cluster/kubernetes-api";
import { type Check, controlPlanesOf, type Expected, problemIf } from "./check";
import type { ClusterState, SnapshotReport } from "./cluster-state";

const quotaShare = 0.8;
const gibibyte = 1024 ** 3;

export function staticPods(expected: Expected, state: ClusterState): Check {
  const names = controlPlanesOf(expected);
  const ofCluster = managerProblems(state, state.now);
  const sick = names.filter(
    (name) =>
      nodeProblems(name, state, state.now).length > 0 || staticPodProblems(name, state).length > 0,
  );
  const isOneSpared = isSpared(sick, names.length, [
    ...ofCluster,
    ...etcdWrite(state).problems,
    ...strangers(expected, state),
  ]);
  return {
    name: "control planes",
    saw: `the four static pods of ${names.length === 1 ? names[0] : `each of ${names.length}`} are ready, and a controller manager leads`,
    problems: [
      ...names.flatMap((machine) =>
        staticPodProblems(machine, state).map((saw) => ({
          machine,
          saw,
          fix:
            `kubectl -n kube-system get pods --field-selector spec.nodeName=${machine}, and the logs of that pod; ` +
            (isOneSpared
              ? `where nothing helps, az vm delete --resource-group GROUP --name ${machine} --yes, then pulumi up, which makes it anew`
              : "delete no VM meanwhile, which may cost etcd its majority"),
        })),
      ),
      ...ofCluster.map((saw) => ({
        saw,
        fix: "kubectl -n kube-system logs -l component=kube-controller-manager",
      })),
    ],
  };
}

const etcdPods = ({ pods }: ClusterState) =>
  pods.filter(({ metadata }) => metadata.name.startsWith("etcd-"));

/** Pods of etcd that are no control plane's of the stack. */
const strangers = (expected: Expected, state: ClusterState) =>
  etcdPods(state).filter(
    ({ metadata }) => !controlPlanesOf(expected).some((name) => `etcd-${name}` === metadata.name),
  );

const etcdctl = (name: string, command: string): string =>
  `kubectl -n kube-system exec ${name} -- etcdctl --cacert /etc/kubernetes/pki/etcd/ca.crt ` +
  `--cert /etc/kubernetes/pki/etcd/peer.crt --key /etc/kubernetes/pki/etcd/peer.key ${command}`;

export const etcdWrite = (state: ClusterState): Check => ({
  name: "etcd takes writes",
  saw: "the Lease kube-system/zoned-health-check was renewed",
  problems: problemIf(state.writeError !== undefined, {
    saw: state.writeError ?? "",
    fix: `if it is out of space: ${etcdctl(
      etcdPods(state)[0]?.metadata.name ?? "etcd-NODE",
      "alarm list",
    )}, then compact, defrag and alarm disarm`,
  }),
});

/**
 * Who is a member is asked of etcd only, which listens on the machines. What the API server says is
 * how each member is: kubeadm's probe asks etcd's /readyz, where a learner, corrupt data and a
 * member that sees no leader fail.
 */
export function etcdMembers(expected: Expected, state: ClusterState): Check {
  const names = controlPlanesOf(expected).map((name) => `etcd-${name}`);
  const pods = etcdPods(state);
  const ready = names.filter((name) => {
    const pod = named(pods, name);
    return pod !== undefined && notReady(pod).length === 0;
  });
  const list = etcdctl(ready[0] ?? names[0] ?? "etcd-NODE", "member list");
  const spare = ready.length - Math.floor(names.length / 2) - 1;
  return {
    name: "etcd members",
    saw:
      `${ready.length} of ${names.length} are ready: no learner, data not corrupt, a leader seen ` +
      "(the member list itself can only be asked on a machine, see docs/doctor.md)",
    problems: [
      ...problemIf(ready.length < names.length, {
        saw:
          `${ready.length} of ${names.length} are ready, ` +
          (spare < 0
            ? "which is no majority"
            : spare === 0
              ? "and one less is no majority"
              : `and ${spare} more may fail`),
        fix: `see the control planes above, and ${list}`,
      }),
      ...strangers(expected, state).map(({ metadata: { name } }) => ({
        saw: `${name} is the etcd of no control plane of this stack`,
        fix: `${list}; if its machine is gone: etcdctl member remove, with the id from that list`,
      })),
    ],
  };
}

/** By the images of etcd's pods: a member that is being upgraded is not the last one. */
export function etcdVersions(state: ClusterState): Check {
  const members = etcdPods(state).map((pod) => ({
    name: pod.metadata.name,
    version: /:v?(\d+\.\d+\.\d+)/.exec(containerOf(pod, "etcd")?.image ?? "")?.[1],
  }));
  const versions = [...new Set(members.map(({ version }) => version))];
  return {
    name: "etcd version",
    saw: versions.join(", "),
    notAsked: versions.includes(undefined) ? "an image of etcd names no version" : undefined,
    problems: problemIf(versions.length > 1, {
      saw: members.map(({ name, version }) => `${name} is ${version}`).join(", "),
      fix: "run pulumi up until the upgrade has ended",
    }),
  };
}

export function etcdSize(expected: Expected, state: ClusterState): Check {
  const commands = etcdPods(state).flatMap((pod) => containerOf(pod, "etcd")?.command ?? []);
  const quotas = commands.flatMap((word) => {
    const [, bytes] = /^--quota-backend-bytes=(\d+)$/.exec(word) ?? [];
    return bytes === undefined ? [] : [Number(bytes)];
  });
  // Without one, etcd has 2 GiB.
  const quota = quotas.length === 0 ? 2 * gibibyte : Math.min(...quotas);
  const { storageBytes = 0 } = state;
  const share = storageBytes / quota;
  const used = `${(storageBytes / 1024 ** 2).toFixed(1)} MiB of ${quota / gibibyte} GiB (${Math.round(share * 100)} %)`;
  const [first = "NODE"] = controlPlanesOf(expected);
  return {
    name: "etcd size",
    saw: used,
    notAsked:
      state.storageBytes === undefined
        ? "the API server's metrics have no apiserver_storage_size_bytes"
        : undefined,
    problems: problemIf(share > quotaShare, {
      saw: `${used}: at its quota etcd takes no more writes`,
      fix: `delete what is not needed (events, old custom resources), then on each member in turn: ${etcdctl(`etcd-${first}`, "defrag")}`,
    }),
  };
}

/** A single one may fail, and the next is a little late. */
const intervals = 3;

const minute = 60_000;

const millisecondsOf = (every: string): number => {
  const [, number, unit] = /^(\d+)([mh])$/.exec(every) ?? [];
  return Number(number) * minute * (unit === "h" ? 60 : 1);
};

const words = (milliseconds: number): string => {
  if (Number.isNaN(milliseconds)) return "an unknown time";
  const minutes = Math.max(0, Math.floor(milliseconds / minute));
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
};

/** What the newest snapshot is, by the control plane that made it. */
const described = ({ name, bytes, machine, where }: SnapshotReport): string => {
  const size = bytes === undefined ? "" : `, ${(Number(bytes) / 1024 ** 2).toFixed(1)} MiB`;
  return `${name} of ${machine}${size}, in ${where}`;
};

/** How old the newest snapshot of etcd is. Storage is not asked: the control planes say what they saved. */
export function snapshots(
  { etcdBackups: every }: Expected,
  { now, snapshot = {} }: ClusterState,
): Check {
  const { time, failed, error } = snapshot;
  const name = "etcd snapshots";
  if (every === undefined) {
    return { name, saw: "", problems: [], notAsked: "etcdBackups is not set" };
  }
  const age = now - Date.parse(time ?? "");
  const newest = time === undefined ? "none was made" : `${words(age)} old: ${described(snapshot)}`;
  const failure =
    error === undefined
      ? ""
      : `; ${words(now - Date.parse(failed ?? ""))} ago one failed on ${error}`;
  // A time that cannot be read is no age that is good.
  const isOverdue = !(age <= intervals * millisecondsOf(every));
  return {
    name,
    saw: `the newest is ${newest}${failure}`,
    problems: problemIf(isOverdue, {
      saw: `${time === undefined ? newest : `the newest is ${newest}`}, and one is due every ${every}${failure}`,
      fix: "on each control plane, journalctl --unit zoned-etcd-snapshot says why; systemctl start zoned-etcd-snapshot tries again",
    }),
  };
}
