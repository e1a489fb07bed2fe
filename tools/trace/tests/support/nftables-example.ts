/** `table ip kube-proxy` as nft lists it. */
export function kubeProxyTable(version: Version): string {
  const old = version === "1.29";
  const maps = [
    set(
      "map",
      "service-ips",
      "ipv4_addr . inet_proto . inet_service : verdict",
      services.flatMap(toServices),
    ),
    set(
      "map",
      "service-nodeports",
      "inet_proto . inet_service : verdict",
      services
        .filter((each) => each.nodePort !== undefined && each.backends.length > 0)
        .map((each) => `tcp . ${String(each.nodePort)} : goto external-ABCDEFGH-${each.name}`),
    ),
    set(
      "map",
      "no-endpoint-services",
      "ipv4_addr . inet_proto . inet_service : verdict",
      services.flatMap(withoutEndpoints),
    ),
    set("map", "no-endpoint-nodeports", "inet_proto . inet_service : verdict", [
      'tcp . 30001 comment "ns2/local:http" : drop',
    ]),
    set("map", "firewall-ips", "ipv4_addr . inet_proto . inet_service : verdict", [
      '5.6.7.8 . tcp . 80 comment "ns5/sticky:http" : goto firewall-ABCDEFGH-ns5/sticky/tcp/http',
    ]),
    ...(old
      ? []
      : [
          set(
            "set",
            "cluster-ips",
            "ipv4_addr",
            services.map((each) => each.clusterAddress),
          ),
          set("set", "nodeport-ips", "ipv4_addr", ["192.168.0.2"]),
        ]),
    ...services
      .filter((each) => each.affinity)
      .flatMap((each) =>
        each.backends.map(
          (one) =>
            `set affinity-${endpointOf(each, one)} {\n\t\ttype ipv4_addr\n\t\tsize 65535\n\t\tflags dynamic,timeout\n\t\ttimeout 3h\n\t}`,
        ),
      ),
  ];
  return `table ip kube-proxy {\n\tcomment "rules for kube-proxy"\n\n\t${[...maps, ...chains(version)].join("\n\n\t")}\n}\n`;
}

function set(kind: string, name: string, type: string, elements: readonly string[]): string {
  const written =
    elements.length === 0 ? "" : `\n\t\telements = { ${elements.join(",\n\t\t\t     ")} }`;
  return `${kind} ${name} {\n\t\ttype ${type}${written}\n\t}`;
}

function toServices(service: Service): string[] {
  if (service.backends.length === 0) return [];
  return [
    `${service.clusterAddress} . tcp . 80 : goto service-ABCDEFGH-${service.name}`,
    ...(service.external ?? []).map(
      (address) => `${address} . tcp . 80 : goto external-ABCDEFGH-${service.name}`,
    ),
  ];
}

function withoutEndpoints(service: Service): string[] {
  if (service.backends.length === 0) {
    return [service.clusterAddress, ...(service.external ?? [])].map(
      (address) => `${address} . tcp . 80 comment "${service.name}" : goto reject-chain`,
    );
  }
  return service.local === true
    ? (service.external ?? []).map(
        (address) => `${address} . tcp . 80 comment "${service.name}" : drop`,
      )
    : [];
}

const mark = "meta mark set meta mark | 0x00004000";

function chain(name: string, ...lines: readonly string[]): string {
  return [`chain ${name} {`, ...lines.map((line) => `\t\t${line}`), "\t}"].join("\n");
}

/** All chains of the table. */
function chains(version: Version): string[] {
  const old = version === "1.29";
  const late = version === "1.34";
  const filter = late ? "filter" : "-110";
  const ofNode = old ? "fib daddr type local ip daddr != 127.0.0.0/8" : "ip daddr @nodeport-ips";
  const check = "ct state new jump cluster-ips-check";
  return [
    chain("mark-for-masquerade", mark),
    chain(
      "masquerading",
      "meta mark & 0x00004000 == 0x00000000 return",
      "meta mark set meta mark ^ 0x00004000",
      "masquerade fully-random",
    ),
    chain(
      "services",
      "ip daddr . meta l4proto . th dport vmap @service-ips",
      `${ofNode} meta l4proto . th dport vmap @service-nodeports`,
    ),
    chain(
      late ? "filter-prerouting-pre-dnat" : "filter-prerouting",
      "type filter hook prerouting priority dstnat - 10; policy accept;",
      "ct state new jump firewall-check",
    ),
    ...(late
      ? [
          chain(
            "filter-output-pre-dnat",
            "type filter hook output priority -110; policy accept;",
            "ct state new jump firewall-check",
          ),
        ]
      : []),
    chain(
      "filter-input",
      `type filter hook input priority ${filter}; policy accept;`,
      "ct state new jump nodeport-endpoints-check",
      "ct state new jump service-endpoints-check",
    ),
    chain(
      "filter-forward",
      `type filter hook forward priority ${filter}; policy accept;`,
      "ct state new jump service-endpoints-check",
      ...(old ? [] : [check]),
    ),
    chain(
      "filter-output",
      `type filter hook output priority ${filter}; policy accept;`,
      "ct state new jump service-endpoints-check",
      late ? check : "ct state new jump firewall-check",
    ),
    ...(version === "1.33"
      ? [
          chain(
            "filter-output-post-dnat",
            "type filter hook output priority -90; policy accept;",
            check,
          ),
        ]
      : []),
    chain(
      "nat-prerouting",
      "type nat hook prerouting priority dstnat; policy accept;",
      "jump services",
    ),
    chain("nat-output", "type nat hook output priority -100; policy accept;", "jump services"),
    chain(
      "nat-postrouting",
      "type nat hook postrouting priority srcnat; policy accept;",
      "jump masquerading",
    ),
    chain(
      "service-endpoints-check",
      "ip daddr . meta l4proto . th dport vmap @no-endpoint-services",
    ),
    chain(
      "nodeport-endpoints-check",
      `${ofNode} meta l4proto . th dport vmap @no-endpoint-nodeports`,
    ),
    chain("firewall-check", "ip daddr . meta l4proto . th dport vmap @firewall-ips"),
    chain(
      "reject-chain",
      'comment "helper for @no-endpoint-services / @no-endpoint-nodeports"',
      "reject",
    ),
    ...(old
      ? []
      : [
          chain(
            "cluster-ips-check",
            'ip daddr @cluster-ips reject comment "Reject traffic to invalid ports of ClusterIPs"',
            'ip daddr 172.30.0.0/16 drop comment "Drop traffic to unallocated ClusterIPs"',
          ),
        ]),
    ...services.filter((each) => each.backends.length > 0).flatMap(chainsOf),
  ];
}

function chainsOf(service: Service): string[] {
  const name = `ABCDEFGH-${service.name}`;
  const external =
    service.local === true
      ? [
          `ip saddr 10.0.0.0/8 goto service-${name} comment "short-circuit pod traffic"`,
          `fib saddr type local jump mark-for-masquerade comment "masquerade local traffic"`,
          `fib saddr type local goto service-${name} comment "short-circuit local traffic"`,
        ]
      : ["jump mark-for-masquerade", `goto service-${name}`];
  const own = [
    `ip daddr ${service.clusterAddress} tcp dport 80 ip saddr != 10.0.0.0/8 jump mark-for-masquerade`,
  ];
  const count = String(service.backends.length);
  const picks = service.backends
    .map((one, at) => `${String(at)} : goto endpoint-${endpointOf(service, one)}`)
    .join(", ");
  const sticky =
    service.affinity === true
      ? service.backends.map(
          (one) =>
            `ip saddr @affinity-${endpointOf(service, one)} goto endpoint-${endpointOf(service, one)}`,
        )
      : [];
  const endpoint = (one: Backend): string =>
    chain(
      `endpoint-${endpointOf(service, one)}`,
      `ip saddr ${one.address} jump mark-for-masquerade`,
      ...(service.affinity === true
        ? [`update @affinity-${endpointOf(service, one)} { ip saddr }`]
        : []),
      `meta l4proto tcp dnat to ${one.address}:${String(one.port)}`,
    );
  return [
    chain(`service-${name}`, ...own, ...sticky, `numgen random mod ${count} vmap { ${picks} }`),
    ...(service.external === undefined && service.nodePort === undefined
      ? []
      : [chain(`external-${name}`, ...external)]),
    ...(service.sources === undefined
      ? []
      : [chain(`firewall-${name}`, `ip saddr != ${service.sources} drop`)]),
    ...service.backends.map(endpoint),
  ];
}

/** What changed in kube-proxy's own table over its versions. */
export type Version = "1.29" | "1.33" | "1.34";

interface Backend {
  readonly address: string;
  readonly port: number;
}

interface Service {
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
const services: readonly Service[] = [
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

const endpointOf = (service: Service, { address, port }: Backend): string =>
  `ABCDEFGH-${service.name}__${address}/${String(port)}`;
