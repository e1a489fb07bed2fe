import { Members } from "../../../../machines/simulated/cluster/members";
import { type ObservedPeers, peerProblems } from "../../../../machines/simulated/cluster/peers";
import { components } from "../../../../machines/simulated/control-plane/static-pods";
import { vmOf } from "../../../support/simulated/fixture";

const names = [1, 2, 3, 4, 5].map((index) => `demo-cp-${index}`);
const vms = names.map((name, index) => vmOf(name, "1", `172.16.1.${index}`));

const conditions = (status: string) => ({ conditions: [{ type: "Ready", status, message: "it" }] });
const node = (name: string, status = "True") => ({
  metadata: { name, labels: { "node-role.kubernetes.io/control-plane": "" } },
  status: conditions(status),
});
const pod = (name: string, status = "True") => ({ metadata: { name }, status: conditions(status) });
const podsOf = (name: string) => components.map((component) => pod(`${component}-${name}`));

/**
 * The first of so many control planes sees the others, all healthy, and itself and a worker that are
 * not.
 */
function seen(count: number): ObservedPeers & { readonly members: Members["list"] } {
  const [first, ...others] = names.slice(0, count) as [string, ...string[]];
  return {
    own: first,
    members: vms.slice(0, count).reduce((members, vm) => members.with(vm), new Members([])).list,
    nodes: [
      node(first, "False"),
      { metadata: { name: "demo-workers-1", labels: {} }, status: conditions("False") },
      ...others.map((name) => node(name)),
    ],
    pods: others.flatMap(podsOf),
    awaitsReady: true,
  };
}

const three = seen(3);
const of = (change: (members: Members) => Members, all = three) =>
  change(new Members(all.members)).list;
const without = (name: string, all: ObservedPeers) =>
  all.nodes.filter(({ metadata }) => metadata.name !== name);

it("finds no problem where all others are healthy, or where there are none", () => {
  expect([peerProblems(three), peerProblems(seen(1))]).toEqual([[], []]);
});

it.each<[string, Partial<ObservedPeers>, string]>([
  [
    "an unhealthy etcd",
    { members: of((all) => all.withFailure("demo-cp-2", "etcd")) },
    "etcd member demo-cp-2 is not healthy",
  ],
  [
    "a member whose machine is gone",
    { members: of((all) => all.withDeleted(vms[2]!)), nodes: without("demo-cp-3", three) },
    "etcd member demo-cp-3 is not healthy",
  ],
  [
    "etcd without space, its own too",
    { members: of((all) => all.withFailure("demo-cp-1", "etcd-space")) },
    "etcd member demo-cp-1: alarm NOSPACE",
  ],
  [
    "a Node that is not Ready",
    { nodes: [node("demo-cp-2", "Unknown"), node("demo-cp-3")] },
    "node demo-cp-2: Ready is Unknown it",
  ],
  [
    "a static pod that is not ready",
    { pods: [...three.pods.slice(1), pod("etcd-demo-cp-2", "False")] },
    "static pod etcd-demo-cp-2 is not Ready",
  ],
  [
    "a static pod that is missing",
    { pods: three.pods.slice(1) },
    "static pod etcd-demo-cp-2 is not Ready",
  ],
])("finds %s", (_, change, line) => {
  expect(peerProblems({ ...three, ...change })).toEqual([line]);
});

it("does not ask for Ready where nobody knows when that can be", () => {
  const nodes = [node("demo-cp-2", "False"), node("demo-cp-3", "False")];

  expect(peerProblems({ ...three, nodes, awaitsReady: false })).toEqual([]);
});

it("lets one of five be missing, whose machine is gone, and not two, nor one whose machine is there", () => {
  const five = seen(5);
  const members = of((all) => all.withDeleted(vms[4]!), five);
  const gone = { ...five, members, nodes: without("demo-cp-5", five) };
  const two = of((all) => all.withDeleted(vms[4]!).withDeleted(vms[3]!), five);

  expect(peerProblems(gone)).toEqual([]);
  expect(peerProblems({ ...gone, nodes: five.nodes })).toEqual([
    "etcd member demo-cp-5 is not healthy",
  ]);
  expect(peerProblems({ ...gone, members: two, nodes: without("demo-cp-4", gone) })).toEqual([
    "etcd member demo-cp-4 is not healthy",
    "etcd member demo-cp-5 is not healthy",
  ]);
});
