import { parseRoutes } from "../../read/ip";
import { nodeDump } from "../../read/read-dumps";
import { ask, brief, nodeOf, oneNode } from "../support/example";
import { tables } from "../support/iptables-example";

const plain = `default via 192.0.2.254 dev eth0 proto dhcp src 192.0.2.1 metric 100
10.244.1.0/24 dev cni0 proto kernel scope link src 10.244.1.1
10.244.2.0/24 via 192.0.2.2 dev eth0
blackhole 10.244.3.0/24 proto bird
192.0.2.0/24 dev eth0 proto kernel scope link src 192.0.2.1 metric 100
192.168.122.0/24 dev virbr0 proto kernel scope link src 192.168.122.1 linkdown
`;

const shown = (text: string): string[] =>
  [...parseRoutes(text, "routes", 1).routes.values()].map(
    ({ destination, metric, devices }) => `${destination} ${metric} ${devices.join("+")}`,
  );

it.each([
  [
    "ip route",
    plain,
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
  expect(shown(text)).toEqual(expected);
  expect(
    nodeDump([{ file: "mixed", text: `$ ip route\n${text}$ date\n` }]).routes?.routes.size,
  ).toBe(expected.length);
});

it("names file and line of a destination that is none", () => {
  expect(() => parseRoutes(plain.replace("10.244.2.0", "10.244.256.0"), "routes", 1)).toThrow(
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
    expect(brief(asked(question, plain))).toBe(expected);
  });

  it("leave the answer open without it, and where two next hops differ", () => {
    const two = plain
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
    const special = `${plain}10.244.2.5 dev virbr0 metric 50\n10.244.2.5 dev cni0 metric 60\n`;

    expect(brief(asked("pod 10.244.1.9 > 10.96.0.10:80", special))).toBe("reject");
  });

  it("say by a note that the way back to the source is taken for the interface of arrival", () => {
    expect(asked("outside 198.51.100.9 > 10.96.0.10:80", plain).notes.join("\n")).toContain(
      "come in by the interface that `ip route` has to its source",
    );
  });
});
