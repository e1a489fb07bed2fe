/** What changed in kube-proxy's own table over its versions. */
export type Version = "1.29" | "1.33" | "1.34";

export interface Backend {
  readonly address: string;
  readonly port: number;
}

export interface Service {
  readonly name: string;
  readonly clusterAddress: string;
  readonly backends: readonly Backend[];
  readonly external?: readonly string[];
  readonly nodePort?: number;
  /** Whether only endpoints of this node take traffic from outside; none of these is. */
  readonly local?: boolean;
  readonly sources?: string;
  readonly affinity?: boolean;
}

const backend = (address: string, port = 80): Backend => ({ address, port });

/** Services of every kind; pods are 10.0.0.0/8, Services 172.30.0.0/16, the node 192.168.0.2. */
export const services: readonly Service[] = [
  {
    name: "ns1/plain/tcp/http",
    clusterAddress: "172.30.0.41",
    backends: [backend("10.180.0.1"), backend("10.180.0.2"), backend("10.180.0.3", 8080)],
  },
  {
    name: "ns2/local/tcp/http",
    clusterAddress: "172.30.0.42",
    backends: [backend("10.180.1.2")],
    external: ["1.2.3.4"],
    nodePort: 30001,
    local: true,
  },
  {
    name: "ns3/open/tcp/",
    clusterAddress: "172.30.0.43",
    backends: [backend("10.180.0.3")],
    nodePort: 30003,
  },
  {
    name: "ns5/sticky/tcp/http",
    clusterAddress: "172.30.0.45",
    backends: [backend("10.180.0.4"), backend("10.180.0.5")],
    external: ["5.6.7.8"],
    nodePort: 30005,
    sources: "203.0.113.0/25",
    affinity: true,
  },
  {
    name: "ns6/empty/tcp/http",
    clusterAddress: "172.30.0.46",
    backends: [],
    external: ["1.2.3.6"],
  },
];

export const endpointOf = (service: Service, { address, port }: Backend): string =>
  `ABCDEFGH-${service.name}__${address}/${String(port)}`;
