import { unchanged, succeeded } from "../../local-cloud";
import { type Claim, eventually, expectSaid, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { allReady } from "./nodes";

/** What the etcd of a control plane answers, on it. */
export const askEtcd = (path: string): string =>
  "p=/etc/kubernetes/pki/etcd; curl -sS --max-time 60 --cacert $p/ca.crt --cert $p/healthcheck-client.crt " +
  `--key $p/healthcheck-client.key -d '{}' https://127.0.0.1:2379/v3/${path}`;

interface Member {
  readonly name?: string;
  readonly isLearner?: boolean;
  readonly peerURLs: readonly string[];
}

async function members(cluster: RealCluster, on: string): Promise<readonly Member[]> {
  const text = await cluster.inMachine(on, askEtcd("cluster/member/list"));
  return (JSON.parse(text) as { members: readonly Member[] }).members;
}

export async function expectMembers(cluster: RealCluster, on: string): Promise<void> {
  const machines = (await cluster.machines()).filter(({ role }) => role === "control-plane");
  const all = await members(cluster, on);
  expectSame(
    "etcd's members",
    all.map(({ name }) => name).sort(),
    machines.map(({ name }) => name).sort(),
  );
  expectSame("learners", all.filter(({ isLearner }) => isLearner).length, 0);
  for (const { name } of machines) {
    const health = await cluster.inMachine(
      name,
      "curl -sS --max-time 30 http://127.0.0.1:2381/health",
    );
    expectSame(`etcd of ${name}`, (JSON.parse(health) as { health: string }).health, "true");
  }
}

/** Asks the API for its health until this long has passed without a failure in it. */
async function answersFor(cluster: RealCluster, seconds: number): Promise<void> {
  for (const until = Date.now() + seconds * 1000; Date.now() < until;) {
    await cluster.kubectl(["get", "--raw", "/healthz"]);
  }
}

const patience = 40 * 60;

/**
 * Kills kubeadm on a machine that joins, once etcd counts it among those that vote; gives up by the
 * signal.
 */
async function breakJoin(
  cluster: RealCluster,
  joining: string,
  other: string,
  signal: AbortSignal,
): Promise<void> {
  await eventually(patience, signal, () =>
    cluster.inMachine(joining, "pgrep --full '^kubeadm join'"),
  );
  await eventually(patience, signal, async () => {
    const all = await members(cluster, other);
    if (!all.some(({ name, isLearner }) => name === joining && !isLearner)) {
      throw new Error(`etcd has not promoted ${joining}`);
    }
  });
  await cluster.inMachine(joining, "pkill --signal KILL --full '^kubeadm join'");
}

export const replacesInitialControlPlane: Claim = {
  sentence:
    "the initial control plane, deleted for good, is replaced by `pulumi up`: the new one joins, nothing is initialized twice, and no member or Node is left over",
  check: async (cluster) => {
    const [initialControlPlane = "", second = ""] = await cluster.names();
    const idOf = () =>
      cluster.kubectl(["get", "namespace", "kube-system", "--output", "jsonpath={.metadata.uid}"]);
    const [cluster1, before] = [await idOf(), await cluster.generations()];
    await cluster.ask("DELETE", initialControlPlane);
    succeeded(await cluster.up("--refresh"));
    const after = await cluster.generations();
    if (after[initialControlPlane] === before[initialControlPlane])
      throw new Error(`${initialControlPlane} was not replaced`);
    expectSame(
      "the others",
      { ...after, [initialControlPlane]: "" },
      { ...before, [initialControlPlane]: "" },
    );
    expectSame("the cluster's own id", await idOf(), cluster1);
    await expectMembers(cluster, second);
    await eventually(120, cluster.signal, () => allReady(cluster, Object.keys(after).length));
  },
};

export const threeClaims: readonly Claim[] = [
  {
    sentence:
      "etcd has three healthy members, none of them a learner, and every machine is a Ready node",
    check: async (cluster) => {
      const names = await cluster.names();
      await expectMembers(cluster, names[0]!);
      await eventually(120, cluster.signal, () => allReady(cluster, names.length));
    },
  },
  {
    sentence: "a second `pulumi up` of three control planes changes nothing",
    check: async (cluster) => unchanged(await cluster.up()),
  },
  {
    sentence:
      "when the initial control plane's zone loses power the API answers through the balancer again within a minute, and keeps answering",
    isGround: true,
    check: async (cluster) => {
      const [initialControlPlane = ""] = await cluster.names();
      await cluster.ask("POST", initialControlPlane, "powerOff");
      const since = Date.now();
      await eventually(180, cluster.signal, () => cluster.kubectl(["get", "--raw", "/healthz"]));
      const seconds = Math.round((Date.now() - since) / 1000);
      await eventually(180, cluster.signal, () => answersFor(cluster, 60));
      return `answered after ${seconds} s`;
    },
  },
  replacesInitialControlPlane,
  {
    sentence:
      "a join whose kubeadm dies right after etcd has promoted its member is undone and done again by the step itself",
    check: async (cluster) => {
      const names = await cluster.names();
      const [other = "", joining = ""] = [names[0], names.at(-1)];
      await cluster.ask("DELETE", joining);
      const over = new AbortController();
      const signal = AbortSignal.any([cluster.signal, over.signal]);
      const [up, broken] = await Promise.allSettled([
        cluster.up("--refresh").finally(() => over.abort()),
        breakJoin(cluster, joining, other, signal),
      ]);
      if (up.status === "rejected") throw up.reason;
      succeeded(up.value);
      if (broken.status === "rejected") throw broken.reason;
      const log = await cluster.inMachine(joining, "cat /var/log/zoned.log");
      expectSaid(log, ["undoing a join that did not end well", "removing etcd member"]);
      await expectMembers(cluster, other);
      await eventually(120, cluster.signal, () => allReady(cluster, names.length));
    },
  },
];
