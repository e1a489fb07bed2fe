import { type Check, type Expected, problemIf } from "./check";
import type { ClusterState, SnapshotReport } from "./cluster-state";

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
