import { start } from "../../../evaluate/flow";
import { Kernel } from "../../../evaluate/kernel";
import { baseChains } from "../../../evaluate/rules/nftables";
import { parse } from "../../../read/nftables/parse";
import type { Packet } from "../../../model/packet";
import { Path } from "../../../evaluate/context";
import { nothing } from "../../support/example";

const ip = (first: number, at: number): string =>
  `10.${String(first)}.${String(at >> 8)}.${String(at & 255)}`;

/** A table with many Services of many endpoints. */
function table(services: number, endpoints: number): string {
  const numbers = Array.from({ length: services }, (_, at) => at);
  const targets = Array.from(
    { length: endpoints },
    (_, at) => `${String(at)} : ${ip(128, at)} . 8080`,
  ).join(", ");
  return [
    "table ip services {",
    "\tmap service-ips {",
    "\t\ttype ipv4_addr . inet_proto . inet_service : verdict",
    `\t\telements = { ${numbers.map((at) => `${ip(96, at)} . tcp . 80 : goto service-${String(at)}/`).join(",\n\t\t\t     ")} }`,
    "\t}",
    "\tchain services {",
    "\t\tip daddr . meta l4proto . th dport vmap @service-ips",
    "\t}",
    ...numbers.map(
      (at) =>
        `\tchain service-${String(at)}/ {\n\t\tmeta l4proto tcp dnat ip to numgen random mod ${String(endpoints)} map { ${targets} }\n\t}`,
    ),
    "\tchain nat-prerouting {",
    "\t\ttype nat hook prerouting priority dstnat; policy accept;",
    "\t\tjump services",
    "\t}",
    "}",
    "",
  ].join("\n");
}

function walk(
  services: number,
  endpoints: number,
): { visited: number; steps: number; shares: number[] } {
  const nftables = parse(table(services, endpoints), "nft.txt", 1);
  const packet: Packet = {
    from: "outside",
    source: "203.0.113.9",
    destination: ip(96, services - 1),
    port: 80,
    protocol: "tcp",
  };
  const dump = { ...nothing, nftables };
  const path = new Path();
  const node = { dump, packet, family: 4 as const, podRanges: [], podDevices: [] };
  const flows = new Kernel(
    node,
    path,
    baseChains(nftables, 4, () => true),
  ).run(start(packet));
  return {
    visited: path.visited,
    steps: path.steps.length,
    shares: flows.map(({ probability }) => probability),
  };
}

it("looks at no more rules when there are more Services", () => {
  expect(walk(20_000, 2)).toEqual(walk(2, 2));
});

it("looks at no more rules, and reports no more steps, when a Service has more endpoints", () => {
  const [few, many] = [walk(1, 10), walk(1, 1_000)];
  expect([many.visited, many.steps]).toEqual([few.visited, few.steps]);
  expect(many.shares).toHaveLength(1_000);
  expect(many.shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 9);
});
