import { findService } from "../evaluate/find-service";
import { canonical, isWithin, rangeOf } from "../model/packet";
import { parseAddresses, parseRoutes } from "../read/ip";
import { nodeDump } from "../read/read-dumps";
import { ask, brief, nodeOf, oneNode, tables } from "./support/example";
import { goldenDumps } from "./support/kube-proxy/golden-dumps";

const ipAddr = `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
2: eth0@if7: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default
    link/ether 02:42:ac:12:00:02 brd ff:ff:ff:ff:ff:ff link-netnsid 0
    inet 192.0.2.1/24 brd 192.0.2.255 scope global eth0
       valid_lft forever preferred_lft forever
    inet6 2001:DB8::1/64 scope global nodad
       valid_lft forever preferred_lft forever
`;
const expected = [
  { name: "lo", addresses: [{ address: "127.0.0.1", prefix: 8 }] },
  {
    name: "eth0",
    addresses: [
      { address: "192.0.2.1", prefix: 24 },
      { address: "2001:db8::1", prefix: 64 },
    ],
  },
];

it.each([
  ["ip addr", ipAddr],
  [
    "ip -br addr",
    "lo               UNKNOWN        127.0.0.1/8\neth0@if7         UP             192.0.2.1/24 2001:db8::1/64\n",
  ],
  [
    "ip -o addr",
    "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever\n2: eth0    inet 192.0.2.1/24 brd 192.0.2.255 scope global eth0\n2: eth0    inet6 2001:db8::1/64 scope global\n",
  ],
  [
    "ip -j addr",
    '[{"ifindex":1,"ifname":"lo","addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8}]},{"ifindex":2,"ifname":"eth0","addr_info":[{"local":"192.0.2.1","prefixlen":24},{"local":"2001:db8::1","prefixlen":64}]}]',
  ],
])("%s is read as interfaces and addresses", (_, text) => {
  expect(parseAddresses(text, "ip-addr", 1).interfaces).toEqual(expected);
});

it("names file and line of what cannot be", () => {
  expect(() =>
    parseAddresses(ipAddr.replace("192.0.2.1/24", "192.0.2.256/24"), "ip-addr", 1),
  ).toThrow(/^ip-addr:7: expected an address such as 10\.0\.0\.1\/24, got 192\.0\.2\.256/);
  expect(() => parseAddresses("    inet 10.0.0.1/24 scope global eth0", "ip-addr", 4)).toThrow(
    /^ip-addr:4: expected a line that names an interface/,
  );
  expect(() => parseAddresses('[{"ifname":"lo",', "ip-addr", 1)).toThrow(
    /^ip-addr:1: expected the whole JSON/,
  );
});

it.each([
  ["10.0.0.0/255.255.0.0", "10.0.255.255", true],
  ["10.0.0.1-10.0.0.9", "10.0.0.9", true],
  ["10.0.0.1-10.0.0.9", "10.0.0.10", false],
  ["fd00::/56", "fd00:0:0:ff::1", true],
  ["::/0", "10.0.0.1", false],
])("%s holds %s: %s", (range, address, held) => {
  expect(isWithin(rangeOf(address)!, rangeOf(range)!)).toBe(held);
});

it("writes an address one way only", () => {
  expect(["FD00:0:0::0:1", "10.0.0.1", "10.0.0.0/8", "name"].map(canonical)).toEqual([
    "fd00::1",
    "10.0.0.1",
    null,
    null,
  ]);
});

describe("a source that is not given", () => {
  const asked = (
    rule: string,
    from: string,
    detector = "! -s 10.244.0.0/16",
    addresses = ipAddr,
  ) => {
    const nat = `*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A PREROUTING -j KUBE-SERVICES\n-A OUTPUT -j KUBE-SERVICES\n-A KUBE-SERVICES -d 10.96.0.10/32 -j KUBE-SVC-A\n-A KUBE-SVC-A ${detector} -d 10.96.0.10/32 -j KUBE-MARK-MASQ\n-A KUBE-SVC-A -j KUBE-SEP-A\n-A KUBE-SEP-A -s 10.244.2.5/32 -j KUBE-MARK-MASQ\n-A KUBE-SEP-A -p tcp -j DNAT --to-destination 10.244.2.5:80\n-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000\nCOMMIT\n`;
    const filter = `*filter\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A FORWARD ${rule} -j DROP\n-A OUTPUT ${rule} -j DROP\nCOMMIT\n`;
    return brief(ask(nodeOf(nat + filter, addresses), `${from} - > 10.96.0.10:80`));
  };
  const through = (masquerade: boolean) => `dnat 10.244.2.5:80=1 masquerade=${masquerade}`;

  it.each([
    ["pod", "-s 10.244.0.0/16", "drop"],
    ["pod", "-s 10.0.0.0/8", "drop"],
    ["pod", "-s 192.0.2.0/24", through(false)],
    ["outside", "-s 10.244.0.0/16", through(true)],
    ["node", "-s 192.0.2.0/24", "drop"],
    ["node", "-s 10.244.0.0/16", through(true)],
  ])("is as far known as %s implies: %s", (from, rule, answer) => {
    expect(asked(rule, from)).toBe(answer);
  });

  it.each([
    ["pod", "-s 10.244.1.0/24"],
    ["outside", "-s 198.51.100.0/24"],
  ])("is not known closer than %s implies: %s", (from, rule) => {
    expect(asked(rule, from)).toMatch(/^unknown/);
  });

  it("is the node's own address where that lies in the pods' range, as with Azure CNI", () => {
    const azure = ipAddr.replace("192.0.2.1/24", "10.244.0.4/16");

    expect(asked("-p udp", "node", undefined, azure)).toBe(through(false));
    expect(
      asked(
        "-p udp",
        "node",
        undefined,
        azure + "3: cni0: <UP>\n    inet 10.244.1.1/24 scope global cni0\n",
      ),
    ).toBe(through(false));
    expect(
      asked(
        "-p udp",
        "node",
        undefined,
        ipAddr + "3: cni0: <UP>\n    inet 10.244.1.1/24 scope global cni0\n",
      ),
    ).toBe(through(true));
  });

  it("is recognised by the interface where kube-proxy recognises pods by theirs", () => {
    expect(asked("-p udp", "pod", "! -i azv+")).toBe(through(false));
    expect(asked("-p udp", "outside", "! -i azv+")).toBe(through(true));
  });
});

describe.each(["iptables", "nftables"] as const)("a Service in rules of %s", (mode) => {
  const node = nodeDump(
    goldenDumps(mode).filter(({ file }) =>
      /^(ip6?tables-save|nft list ruleset|ip address)$/.test(file),
    ),
  );
  const found = (name: string) =>
    findService(node, name)
      .map(({ destination, port, protocol }) => `${destination} ${port}/${protocol}`)
      .sort();

  it.each([
    ["lab/plain", ["10.96.0.10 80/tcp", "fd00:10:96::10 80/tcp"]],
    ["lab/ports:dns", ["10.96.0.11 53/udp", "fd00:10:96::11 53/udp"]],
    ["lab/ports:9153", ["10.96.0.11 9153/tcp", "fd00:10:96::11 9153/tcp"]],
    ["lab/unnamed", ["10.96.0.12 80/tcp", "fd00:10:96::12 80/tcp"]],
    ["lab/empty", ["10.96.0.30 80/tcp", "fd00:10:96::30 80/tcp"]],
    ["lab/balanced-far", ["10.96.0.20 80/tcp", "fd00:10:96::20 80/tcp"]],
    ["lab/only-v6", ["fd00:10:96::91 80/tcp"]],
  ])("is reached by its cluster IPs: %s", (name, expected) => {
    expect(found(name)).toEqual(expected);
  });

  it("has ports that a wrong one is answered with", () => {
    expect(() => found("lab/ports:https")).toThrow(/dns \(53\)/);
    expect(() => found("lab/gone")).toThrow('got "lab/gone"');
  });
});

const ipRoute = `default via 192.0.2.254 dev eth0 proto dhcp src 192.0.2.1 metric 100
10.244.1.0/24 dev cni0 proto kernel scope link src 10.244.1.1
10.244.2.0/24 via 192.0.2.2 dev eth0
blackhole 10.244.3.0/24 proto bird
192.0.2.0/24 dev eth0 proto kernel scope link src 192.0.2.1 metric 100
192.168.122.0/24 dev virbr0 proto kernel scope link src 192.168.122.1 linkdown
`;

const routesIn = (text: string): string[] =>
  [...parseRoutes(text, "routes", 1).routes.values()].map(
    ({ destination, metric, devices }) => `${destination} ${metric} ${devices.join("+")}`,
  );

it.each([
  [
    "ip route",
    ipRoute,
    [
      "0.0.0.0/0 100 eth0",
      "10.244.1.0/24 0 cni0",
      "10.244.2.0/24 0 eth0",
      "10.244.3.0/24 0 ",
      "192.0.2.0/24 100 eth0",
      "192.168.122.0/24 0 virbr0",
    ],
  ],
  [
    "ip -6 route",
    "fe80::/64 dev eth0 proto kernel metric 256 pref medium\nfe80::/64 dev cni0 proto kernel metric 256 pref medium\ndefault via fe80::1 dev eth0 metric 1024 pref medium\n",
    ["fe80::/64 256 eth0+cni0", "::/0 1024 eth0"],
  ],
  [
    "several next hops",
    "default \n\tnexthop via 192.0.2.1 dev eth0 weight 1 \n\tnexthop via 198.51.100.1 dev eth1 weight 1 \n",
    ["0.0.0.0/0 0 eth0+eth1"],
  ],
  [
    "ip route show table all",
    "10.0.0.0/8 dev eth1 table 220\n10.244.1.0/24 dev cni0\nlocal 192.0.2.1 dev eth0 table local proto kernel\n",
    ["10.244.1.0/24 0 cni0"],
  ],
  [
    "ip -j route",
    '[{"dst":"default","gateway":"192.0.2.254","dev":"eth0","metric":100,"flags":[]},{"dst":"fd00::/64","dev":"cni0","flags":[]},{"type":"blackhole","dst":"10.244.3.0/24","flags":[]},{"dst":"10.0.0.0/8","flags":[],"nexthops":[{"dev":"eth0"},{"dev":"eth1"}]}]\n',
    ["0.0.0.0/0 100 eth0", "fd00::/64 0 cni0", "10.244.3.0/24 0 ", "10.0.0.0/8 0 eth0+eth1"],
  ],
])("%s is read", (_, text, expected) => {
  expect(routesIn(text)).toEqual(expected);
  expect(
    nodeDump([{ file: "mixed", text: `$ ip route\n${text}$ date\n` }]).routes?.routes.size,
  ).toBe(expected.length);
});

it("names file and line of a destination that is none", () => {
  expect(() => parseRoutes(ipRoute.replace("10.244.2.0", "10.244.256.0"), "routes", 1)).toThrow(
    /^routes:3: expected a destination such as default or 10\.0\.0\.0\/24, got 10\.244\.256\.0\/24/,
  );
});

describe("libvirt's rules", () => {
  const libvirt = `-A FORWARD -j LIBVIRT_FWX
-A FORWARD -j LIBVIRT_FWI
-A FORWARD -j LIBVIRT_FWO
-A LIBVIRT_FWX -i virbr0 -o virbr0 -j ACCEPT
-A LIBVIRT_FWI -d 192.168.122.0/24 -o virbr0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A LIBVIRT_FWI -o virbr0 -j REJECT --reject-with icmp-port-unreachable
-A LIBVIRT_FWO -s 192.168.122.0/24 -i virbr0 -j ACCEPT
-A LIBVIRT_FWO -i virbr0 -j REJECT --reject-with icmp-port-unreachable`;
  const asked = (question: string, routes: string) =>
    ask(nodeOf(tables({ filter: libvirt }), oneNode, ...(routes === "" ? [] : [routes])), question);

  it.each([
    ["pod 10.244.1.9 > 10.96.0.10:80", "dnat 10.244.2.5:8080=1 masquerade=false"],
    ["pod - > 10.96.0.10:80", "dnat 10.244.2.5:8080=1 masquerade=false"],
    ["outside 198.51.100.9 > 10.96.0.10:80", "dnat 10.244.2.5:8080=1 masquerade=true"],
    ["outside - > 10.96.0.10:80", "dnat 10.244.2.5:8080=1 masquerade=true"],
    ["outside 198.51.100.9 > 192.168.122.7:80", "reject"],
    ["outside 192.168.122.7 > 10.96.0.10:80", "dnat 10.244.2.5:8080=1 masquerade=true"],
  ])("are decided by `ip route`: %s", (question, expected) => {
    expect(brief(asked(question, ipRoute))).toBe(expected);
  });

  it("leave the answer open without it, and where two next hops differ", () => {
    const two = ipRoute
      .replace(
        "10.244.2.0/24 via 192.0.2.2 dev eth0",
        "10.244.2.0/24\n\tnexthop via 192.0.2.2 dev eth0 weight 1\n\tnexthop via 192.168.122.2 dev virbr0 weight 1",
      )
      .replace("10.244.2.0/24\n", "10.244.2.0/24 proto static\n");

    for (const routes of ["", two]) {
      expect(asked("pod 10.244.1.9 > 10.96.0.10:80", routes).verdict).toBe("unknown");
    }
  });

  it("are decided by the more special route, and of two alike by the lower metric", () => {
    const special = `${ipRoute}10.244.2.5 dev virbr0 metric 50\n10.244.2.5 dev cni0 metric 60\n`;

    expect(brief(asked("pod 10.244.1.9 > 10.96.0.10:80", special))).toBe("reject");
  });

  it("say by a note that the way back to the source is taken for the interface of arrival", () => {
    expect(asked("outside 198.51.100.9 > 10.96.0.10:80", ipRoute).notes.join("\n")).toContain(
      "come in by the interface that `ip route` has to its source",
    );
  });
});
