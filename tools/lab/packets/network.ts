import { runAll, output } from "./task";

/** A program with a network of its own: a pod, or another machine. */
export type Place = "pod-a" | "pod-b" | "client" | "far" | "outside" | "internet";

export const node = {
  name: "node-1",
  v4: "192.0.2.1",
  v6: "2001:db8:0:2::1",
} as const;

export const ranges = {
  pods: "10.244.0.0/16,fd00:10:244::/56",
  services: "10.96.0.0/12,fd00:10:96::/112",
} as const;

/** Addresses by their last number, 10.244.1.2 and fd00:10:244:1::2 for a pod on this node. */
const both = (v4: string, v6: string) => (n: number) => ({
  v4: `${v4}.${n}`,
  v6: `${v6}::${n}`,
});

export const podHere = both("10.244.1", "fd00:10:244:1");

export const podThere = both("10.244.2", "fd00:10:244:2");

export const clusterIp = both("10.96.0", "fd00:10:96");

export const balancerIp = both("203.0.113", "2001:db8:203");

export const externalIp = both("198.51.100", "2001:db8:198");

/** On the wire between machines. */
const machine = both("192.0.2", "2001:db8:0:2");

/** A second address of the client outside, which a load balancer's source ranges may admit. */
const admitted = { v4: "198.18.0.5", v6: "2001:db8:18::5" } as const;

const pods: readonly [Place, number][] = [
  ["pod-a", 2],
  ["pod-b", 3],
  ["client", 9],
];

const machines: readonly [Place, number][] = [
  ["far", 2],
  ["outside", 200],
  ["internet", 254],
];

/** What makes `nsenter` run a command in a place. */
export const inNetwork = (place: Place): string => `--net=/run/netns/${place}`;

/**
 * The node with two pods that serve and one that asks, each on a wire of its own as a container
 * network makes it; on the node's wire another machine with pods, a client outside, and a router
 * that takes every address of Services which the node passes on.
 */
export async function buildNetwork(): Promise<void> {
  await runAll(`
    ip link add eth0 type bridge
    ip address add ${node.v4}/24 dev eth0
    ip address add ${node.v6}/64 dev eth0 nodad
    ip link set eth0 up
  `);
  for (const [place, n] of pods) await addPod(place, n);
  for (const [place, n] of machines) await addMachine(place, n);
  await takesAll("far", ["10.244.2.0/24", "fd00:10:244:2::/64"]);
  await takesAll("outside", [admitted.v4, admitted.v6]);
  await takesAll("internet", ["10.96.0.0/12", "203.0.113.0/24", "198.51.100.0/24"]);
  await takesAll("internet", ["fd00:10:96::/112", "2001:db8:203::/64", "2001:db8:198::/64"]);
  await runAll(`
    ip route add 10.244.2.0/24 via ${machine(2).v4}
    ip route add fd00:10:244:2::/64 via ${machine(2).v6}
    ip route add ${admitted.v4} via ${machine(200).v4}
    ip route add ${admitted.v6} via ${machine(200).v6}
    ip route add default via ${machine(254).v4}
    ip route add default via ${machine(254).v6}
  `);
}

async function addPlace(place: Place): Promise<void> {
  const inside = `nsenter ${inNetwork(place)}`;
  await runAll(`
    ip netns add ${place}
    ip link add ${place} type veth peer name eth0 netns ${place}
    ip link set ${place} up
    ${inside} ip link set lo up
    ${inside} ip link set eth0 up
  `);
}

async function addPod(place: Place, n: number): Promise<void> {
  const { v4, v6 } = podHere(n);
  const gateway = podHere(1);
  const inside = `nsenter ${inNetwork(place)}`;
  await addPlace(place);
  await runAll(`
    ip address add ${gateway.v4}/32 dev ${place}
    ip address add ${gateway.v6}/128 dev ${place} nodad
    ip route add ${v4} dev ${place} src ${gateway.v4}
    ip route add ${v6} dev ${place} src ${gateway.v6}
    ${inside} ip address add ${v4}/32 dev eth0
    ${inside} ip address add ${v6}/128 dev eth0 nodad
    ${inside} ip route add ${gateway.v4} dev eth0
    ${inside} ip route add ${gateway.v6} dev eth0
    ${inside} ip route add default via ${gateway.v4}
    ${inside} ip route add default via ${gateway.v6}
  `);
}

async function addMachine(place: Place, n: number): Promise<void> {
  const { v4, v6 } = machine(n);
  const inside = `nsenter ${inNetwork(place)}`;
  await addPlace(place);
  await runAll(`
    ip link set ${place} master eth0
    ${inside} ip address add ${v4}/24 dev eth0
    ${inside} ip address add ${v6}/64 dev eth0 nodad
    ${inside} ip route add default via ${node.v4}
    ${inside} ip route add default via ${node.v6}
  `);
}

/** Makes whole ranges a place's own, so that what reaches it is answered as it came. */
async function takesAll(place: Place, all: readonly string[]): Promise<void> {
  // IPv6 counts such addresses as foreign ones when a program wants to have one.
  const allow = "echo 1 >/proc/sys/net/ipv6/ip_nonlocal_bind";
  await output("nsenter", inNetwork(place), "sh", "-c", allow);
  for (const range of all) {
    await output("nsenter", inNetwork(place), "ip", "route", "add", "local", range, "dev", "lo");
  }
}
