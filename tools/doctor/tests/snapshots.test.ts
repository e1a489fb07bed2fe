import { snapshots } from "../snapshots";
import { ago, type FakeClusterState, healthyCluster, threeByThree } from "./support/cluster-state";

const hour = 3600;

const look = (snapshot: FakeClusterState["snapshot"], etcdBackups: string | undefined = "1h") =>
  snapshots({ ...threeByThree, etcdBackups }, { ...healthyCluster(), snapshot });

const made = (seconds: number) => ({ ...healthyCluster().snapshot, time: ago(seconds) });

it.each([
  ["1h", 3 * hour, 0],
  ["1h", 3 * hour + 1, 1],
  ["30m", 90 * 60, 0],
  ["30m", 2 * hour, 1],
  ["24h", 71 * hour, 0],
])("of a snapshot every %s, one %d s ago makes %d problems", (every, seconds, problems) => {
  expect(look(made(seconds), every).problems).toHaveLength(problems);
});

it("says how old the newest is, and why there was none since", () => {
  const failed = {
    failed: ago(60),
    error: "cp-1: https://backups refuses this machine's identity",
  };

  const { problems } = look({ ...made(5 * hour), ...failed });

  expect(problems[0]!.saw).toBe(
    "the newest is 5 h old: 20261124T215500Z-42.db of cp-2, 3.0 MiB, in https://backups.blob.core.windows.net/etcd, " +
      "and one is due every 1h; 1 min ago one failed on cp-1: https://backups refuses this machine's identity",
  );
  expect(problems[0]!.fix).toContain("systemctl start zoned-etcd-snapshot");
});

it("is content with one that failed while the newest is young, and mentions it", () => {
  const { saw, problems } = look({ ...made(hour), failed: ago(60), error: "cp-1: no answer" });

  expect(problems).toEqual([]);
  expect(saw).toMatch(/^the newest is 60 min old: .*; 1 min ago one failed on cp-1: no answer$/);
});

it.each([
  ["none was tried", undefined, /^none was made, and one is due every 1h$/],
  [
    "none has succeeded",
    { failed: ago(60), error: "cp-1: no answer" },
    /^none was made, and one is due every 1h; 1 min ago one failed on cp-1: no answer$/,
  ],
  [
    "its time cannot be read",
    { ...made(0), time: "yesterday" },
    /^the newest is an unknown time old: .*, and one is due every 1h$/,
  ],
])("reports that %s", (_, snapshot, saw) => {
  expect(look(snapshot).problems[0]!.saw).toMatch(saw);
});

it("asks nothing where etcd is not to be saved", () => {
  const check = snapshots(
    { ...threeByThree, etcdBackups: undefined },
    { ...healthyCluster(), snapshot: undefined },
  );

  expect(check).toMatchObject({ notAsked: "etcdBackups is not set", problems: [] });
});
