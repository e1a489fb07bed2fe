import {
  type Backend,
  endpointOf,
  type Service,
  services,
  type Version,
} from "./nftables-example-services";

const mark = "meta mark set meta mark | 0x00004000";

function chain(name: string, ...lines: readonly string[]): string {
  return [`chain ${name} {`, ...lines.map((line) => `\t\t${line}`), "\t}"].join("\n");
}

/** All chains of the table. */
export function chains(version: Version): string[] {
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
