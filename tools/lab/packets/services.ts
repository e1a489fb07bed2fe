import type { Endpoint, Port, Wanted } from "./cluster";
import { balancerIp, clusterIp, externalIp, node, podHere, podThere } from "./network";

/** Two pods on the node, and two on another one. */
const here = (n: number, more: Partial<Endpoint> = {}): Endpoint => ({
  address: podHere(n),
  nodeName: node.name,
  ...more,
});

const there = (n: number, more: Partial<Endpoint> = {}): Endpoint => ({
  address: podThere(n),
  nodeName: "node-2",
  ...more,
});

const [a, b, c, d] = [here(2), here(3), there(4), there(5)];

const all = [a, b, c];

const http: Port = { name: "http", port: 80, targetPort: 8080, protocol: "TCP" };

const on = (nodePort: number, port = http): Port => ({ ...port, nodePort });

const ending = { ready: false, serving: true, terminating: true };

const waiting = { ready: false, serving: false, terminating: false };

const forZone = (name: string) => ({ hints: { forZones: [{ name }] } });

/** A load balancer's own address, in both families. */
const at = (n: number, ipMode = "VIP") => {
  const { v4, v6 } = balancerIp(n);
  return [v4, v6].map((ip) => ({ ip, ipMode }));
};

const outer = (n: number) => Object.values(externalIp(n));

const nodePort = { type: "NodePort" };

const balancer = { type: "LoadBalancer" };

const local = { externalTrafficPolicy: "Local" };

const sourceRanges = ["198.18.0.0/15", "2001:db8:18::/64"];

/** The node's own address, as of a pod on the host's network. */
const onHost: Endpoint = { address: { v4: node.v4, v6: node.v6 }, nodeName: node.name };

/** How a Service may differ from the plain one. */
type Kind = Omit<Partial<Wanted>, "clusterIp"> & Pick<Wanted, "name">;

/** One of every kind that kube-proxy distinguishes. */
const kinds: readonly Kind[] = [
  { name: "plain" },
  {
    name: "ports",
    ports: [
      { name: "dns", port: 53, targetPort: 5353, protocol: "UDP" },
      { name: "dns-tcp", port: 53, targetPort: 5353, protocol: "TCP" },
      { name: "metrics", port: 9153, targetPort: 9153, protocol: "TCP" },
    ],
    endpoints: [a, c],
  },
  { name: "unnamed", ports: [{ port: 80, targetPort: 8080, protocol: "TCP" }], endpoints: [a] },
  {
    name: "sctp",
    ports: [{ name: "diameter", port: 3868, targetPort: 3868, protocol: "SCTP" }],
    endpoints: [a, c],
  },
  { name: "nodeport", ports: [on(30080)], spec: nodePort },
  {
    name: "nodeport-both",
    ports: [
      on(30053, { name: "tcp", port: 53, targetPort: 5353, protocol: "TCP" }),
      on(30053, { name: "udp", port: 53, targetPort: 5353, protocol: "UDP" }),
    ],
    spec: nodePort,
    endpoints: [a, c],
  },
  { name: "nodeport-local", ports: [on(30081)], spec: { ...nodePort, ...local } },
  {
    name: "nodeport-far",
    ports: [on(30082)],
    spec: { ...nodePort, ...local },
    endpoints: [c, d],
  },
  { name: "balanced", ports: [on(30083)], spec: balancer, ingress: at(10) },
  {
    name: "balanced-local",
    ports: [on(30084)],
    spec: { ...balancer, ...local, healthCheckNodePort: 32084 },
    ingress: at(11),
  },
  {
    name: "balanced-far",
    ports: [on(30085)],
    spec: { ...balancer, ...local, healthCheckNodePort: 32085 },
    endpoints: [c, d],
    ingress: at(12),
  },
  {
    name: "balanced-ranges",
    ports: [on(30086)],
    spec: { ...balancer, loadBalancerSourceRanges: sourceRanges },
    ingress: at(13),
  },
  {
    name: "balanced-ranges-local",
    ports: [on(30087)],
    spec: {
      ...balancer,
      ...local,
      healthCheckNodePort: 32087,
      loadBalancerSourceRanges: sourceRanges,
    },
    ingress: at(14),
  },
  {
    name: "balanced-through",
    ports: [on(30088)],
    spec: { ...balancer, allocateLoadBalancerNodePorts: true },
    ingress: at(15, "Proxy"),
  },
  {
    name: "balanced-without-nodeport",
    spec: { ...balancer, allocateLoadBalancerNodePorts: false },
    ingress: at(16),
  },
  { name: "external", spec: { externalIPs: outer(10) } },
  {
    name: "external-local",
    ports: [on(30089)],
    spec: { ...nodePort, ...local, externalIPs: outer(11) },
  },
  { name: "internal-local", spec: { internalTrafficPolicy: "Local" } },
  {
    name: "internal-far",
    spec: { internalTrafficPolicy: "Local" },
    endpoints: [c, d],
  },
  {
    name: "sticky",
    ports: [on(30090)],
    spec: {
      ...nodePort,
      sessionAffinity: "ClientIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } },
    },
  },
  {
    name: "empty",
    ports: [on(30091)],
    spec: { ...balancer, externalIPs: outer(12) },
    endpoints: [],
    ingress: at(17),
  },
  { name: "waiting", endpoints: [here(2, { conditions: waiting })] },
  {
    name: "ending",
    ports: [on(30092)],
    spec: { ...nodePort, ...local },
    endpoints: [here(2, { conditions: ending }), there(4, { conditions: ending })],
  },
  { name: "draining", endpoints: [here(2, { conditions: ending }), b, c] },
  {
    name: "near",
    endpoints: [here(2, forZone("1")), here(3, forZone("1")), there(4, forZone("2"))],
  },
  {
    name: "many",
    endpoints: Array.from({ length: 14 }, (_, n) => there(20 + n)),
  },
  { name: "host", ports: [{ ...http, targetPort: 8081 }], endpoints: [onHost] },
];

/** Of one family alone, and without an address of its own. */
const special: readonly Wanted[] = [
  { name: "only-v4", ports: [http], endpoints: all, clusterIp: { v4: clusterIp(90).v4 } },
  { name: "only-v6", ports: [http], endpoints: all, clusterIp: { v6: clusterIp(91).v6 } },
  { name: "headless", ports: [http], endpoints: all, clusterIp: "None" },
];

export const services: readonly Wanted[] = [
  ...kinds.map((kind, index) => ({
    ports: [http],
    endpoints: all,
    ...kind,
    clusterIp: clusterIp(10 + index),
  })),
  ...special,
];
