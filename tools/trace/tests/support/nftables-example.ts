/** What changed in kube-proxy's own table over its versions; that of today is in the golden dumps. */
export type Version = "1.29" | "1.33" | "1.34";

/** One block of a table, as nft lists it. */
const block = (head: string, ...lines: readonly string[]): string =>
  `\t${head} {\n${lines.map((line) => `\t\t${line}\n`).join("")}\t}\n`;

const vmap = (name: string, key: string, ...elements: readonly string[]): string =>
  block(
    `map ${name}`,
    `type ${key} : verdict`,
    `elements = { ${elements.join(",\n\t\t\t     ")} }`,
  );

const socket = "ipv4_addr . inet_proto . inet_service";

/** A Service with endpoints: it picks a chain by number, and that sends the packet on. */
function service(
  name: string,
  clusterAddress: string,
  endpoints: readonly string[],
  isSticky = false,
): string[] {
  const sticky = (...lines: readonly string[]) => (isSticky ? lines : []);
  const of = (endpoint: string) => `ABCDEFGH-${name}__${endpoint.replace(":", "/")}`;
  const picks = endpoints.map((each, at) => `${at} : goto endpoint-${of(each)}`).join(", ");
  return [
    ...endpoints.flatMap((each) =>
      sticky(
        block(
          `set affinity-${of(each)}`,
          ...["type ipv4_addr", "size 65535", "flags dynamic,timeout", "timeout 3h"],
        ),
      ),
    ),
    block(
      `chain service-ABCDEFGH-${name}`,
      `ip daddr ${clusterAddress} tcp dport 80 ip saddr != 10.0.0.0/8 jump mark-for-masquerade`,
      ...endpoints.flatMap((each) =>
        sticky(`ip saddr @affinity-${of(each)} goto endpoint-${of(each)}`),
      ),
      `numgen random mod ${endpoints.length} vmap { ${picks} }`,
    ),
    ...endpoints.map((each) =>
      block(
        `chain endpoint-${of(each)}`,
        `ip saddr ${each.split(":")[0]} jump mark-for-masquerade`,
        ...sticky(`update @affinity-${of(each)} { ip saddr }`),
        `meta l4proto tcp dnat to ${each}`,
      ),
    ),
  ];
}

const [plain, local, open, sticky] = [
  "ns1/plain/tcp/http",
  "ns2/local/tcp/http",
  "ns3/open/tcp/",
  "ns5/sticky/tcp/http",
];

/** A chain for what comes from outside to a Service whose policy is Cluster. */
const external = (name: string): string =>
  block(
    `chain external-ABCDEFGH-${name}`,
    "jump mark-for-masquerade",
    `goto service-ABCDEFGH-${name}`,
  );

/**
 * `table ip kube-proxy` as nft lists it, with Services of every kind; pods are 10.0.0.0/8, Services
 * 172.30.0.0/16, the node 192.168.0.2.
 */
export function kubeProxyTable(version: Version): string {
  const [isOld, isLate] = [version === "1.29", version === "1.34"];
  const since131 = (...parts: readonly string[]) => (isOld ? [] : parts);
  const ofNode = isOld ? "fib daddr type local ip daddr != 127.0.0.0/8" : "ip daddr @nodeport-ips";
  const [isAsked, check] = ["ct state new jump", "ct state new jump cluster-ips-check"];
  const base = (name: string, hook: string, priority: string, ...rules: readonly string[]) => {
    const type = name.split("-")[0]!;
    return block(
      `chain ${name}`,
      `type ${type} hook ${hook} priority ${priority}; policy accept;`,
      ...rules,
    );
  };
  const filter = isLate ? "filter" : "-110";
  const blocks = [
    vmap(
      "service-ips",
      socket,
      `172.30.0.41 . tcp . 80 : goto service-ABCDEFGH-${plain}`,
      `172.30.0.42 . tcp . 80 : goto service-ABCDEFGH-${local}`,
      `1.2.3.4 . tcp . 80 : goto external-ABCDEFGH-${local}`,
      `172.30.0.43 . tcp . 80 : goto service-ABCDEFGH-${open}`,
      `172.30.0.45 . tcp . 80 : goto service-ABCDEFGH-${sticky}`,
      `5.6.7.8 . tcp . 80 : goto external-ABCDEFGH-${sticky}`,
    ),
    vmap(
      "service-nodeports",
      "inet_proto . inet_service",
      `tcp . 30001 : goto external-ABCDEFGH-${local}`,
      `tcp . 30003 : goto external-ABCDEFGH-${open}`,
      `tcp . 30005 : goto external-ABCDEFGH-${sticky}`,
    ),
    vmap(
      "no-endpoint-services",
      socket,
      '1.2.3.4 . tcp . 80 comment "ns2/local:http" : drop',
      '172.30.0.46 . tcp . 80 comment "ns6/empty:http" : goto reject-chain',
      '1.2.3.6 . tcp . 80 comment "ns6/empty:http" : goto reject-chain',
    ),
    vmap(
      "no-endpoint-nodeports",
      "inet_proto . inet_service",
      'tcp . 30001 comment "ns2/local:http" : drop',
    ),
    vmap(
      "firewall-ips",
      socket,
      `5.6.7.8 . tcp . 80 comment "ns5/sticky:http" : goto firewall-ABCDEFGH-${sticky}`,
    ),
    ...since131(
      block(
        "set cluster-ips",
        "type ipv4_addr",
        "elements = { 172.30.0.41, 172.30.0.42, 172.30.0.43, 172.30.0.45, 172.30.0.46 }",
      ),
      block("set nodeport-ips", "type ipv4_addr", "elements = { 192.168.0.2 }"),
    ),
    block("chain mark-for-masquerade", "meta mark set meta mark | 0x00004000"),
    block(
      "chain masquerading",
      "meta mark & 0x00004000 == 0x00000000 return",
      "meta mark set meta mark ^ 0x00004000",
      "masquerade fully-random",
    ),
    block(
      "chain services",
      "ip daddr . meta l4proto . th dport vmap @service-ips",
      `${ofNode} meta l4proto . th dport vmap @service-nodeports`,
    ),
    base(
      isLate ? "filter-prerouting-pre-dnat" : "filter-prerouting",
      ...["prerouting", "dstnat - 10", `${isAsked} firewall-check`],
    ),
    base(
      "filter-input",
      ...["input", filter],
      ...[`${isAsked} nodeport-endpoints-check`, `${isAsked} service-endpoints-check`],
    ),
    base(
      "filter-forward",
      ...["forward", filter, `${isAsked} service-endpoints-check`, ...since131(check)],
    ),
    base(
      "filter-output",
      ...["output", filter, `${isAsked} service-endpoints-check`],
      isLate ? check : `${isAsked} firewall-check`,
    ),
    ...(isLate
      ? [base("filter-output-pre-dnat", "output", "-110", `${isAsked} firewall-check`)]
      : since131(base("filter-output-post-dnat", "output", "-90", check))),
    base("nat-prerouting", "prerouting", "dstnat", "jump services"),
    base("nat-output", "output", "-100", "jump services"),
    base("nat-postrouting", "postrouting", "srcnat", "jump masquerading"),
    block(
      "chain service-endpoints-check",
      "ip daddr . meta l4proto . th dport vmap @no-endpoint-services",
    ),
    block(
      "chain nodeport-endpoints-check",
      `${ofNode} meta l4proto . th dport vmap @no-endpoint-nodeports`,
    ),
    block("chain firewall-check", "ip daddr . meta l4proto . th dport vmap @firewall-ips"),
    block(
      "chain reject-chain",
      'comment "helper for @no-endpoint-services / @no-endpoint-nodeports"',
      "reject",
    ),
    ...since131(
      block(
        "chain cluster-ips-check",
        'ip daddr @cluster-ips reject comment "Reject traffic to invalid ports of ClusterIPs"',
        'ip daddr 172.30.0.0/16 drop comment "Drop traffic to unallocated ClusterIPs"',
      ),
    ),
    ...service(plain, "172.30.0.41", ["10.180.0.1:80", "10.180.0.2:80", "10.180.0.3:8080"]),
    ...service(local, "172.30.0.42", ["10.180.1.2:80"]),
    block(
      `chain external-ABCDEFGH-${local}`,
      `ip saddr 10.0.0.0/8 goto service-ABCDEFGH-${local} comment "short-circuit pod traffic"`,
      'fib saddr type local jump mark-for-masquerade comment "masquerade local traffic"',
      `fib saddr type local goto service-ABCDEFGH-${local} comment "short-circuit local traffic"`,
    ),
    ...service(open, "172.30.0.43", ["10.180.0.3:80"]),
    external(open),
    ...service(sticky, "172.30.0.45", ["10.180.0.4:80", "10.180.0.5:80"], true),
    external(sticky),
    block(`chain firewall-ABCDEFGH-${sticky}`, "ip saddr != 203.0.113.0/25 drop"),
  ];
  return `table ip kube-proxy {\n\tcomment "rules for kube-proxy"\n\n${blocks.join("\n")}}\n`;
}
