import type { RuleBody } from "../../../../arm/types/network/network-security-group";
import type { VirtualNetwork } from "../../../../machines/qemu/network/network-view";
import { judged, probe } from "../../../../machines/qemu/network/probes";
import * as rulesets from "../../../../machines/qemu/network/ruleset";
import { httpsServer } from "../../../support/simulated/fixture";

const { ruleset } = rulesets;

const rule = (change: Partial<RuleBody>): RuleBody => ({
  ...{ access: "Allow", direction: "Inbound", priority: 100, protocol: "Tcp" },
  ...{ sourceAddressPrefixes: ["198.18.0.0/24"], sourcePortRange: "*" },
  ...{ destinationAddressPrefix: "172.16.0.0/16", destinationPortRange: "6443" },
  ...change,
});

const balanced = {
  ...{ address: "203.0.113.1", port: 6443, protocol: "Tcp", backendPort: 6443 },
  ...{ isFloating: false, isInternal: false },
  backends: ["172.16.1.4", "172.16.2.4"],
};

const network = (rules?: RuleBody[], natAddress?: string): VirtualNetwork => ({
  key: "k",
  ranges: ["172.16.0.0/16"],
  subnets: [
    {
      ...{ bridge: "s1", prefix: "172.16.1.0/24", gateway: "172.16.1.1" },
      ...{ rules, natAddress, isBehindFirewall: false },
    },
  ],
  balanced: [balanced],
  ...{ destinations: [], names: {} },
});

const chain = (name: string, text: string): string[] =>
  (new RegExp(`chain ${name} \\{\\n([^}]*(?:\\{[^}]*\\}[^}]*)*)\\n  \\}`).exec(text)?.[1] ?? "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

test("a security rule admits its sources to its port, and nothing else about it", () => {
  const lines = chain("inbound-s1", ruleset(network([rule({})]), new Map()));
  expect(lines).toEqual([
    "meta l4proto tcp ip saddr { 198.18.0.0/24 } ip daddr { 172.16.0.0/16 } th dport { 6443 } accept",
  ]);
});

test("a denial drops, tags mean ranges, and a tag that means nothing here admits nobody", () => {
  const text = ruleset(
    network([
      rule({
        access: "Deny",
        protocol: "*",
        sourceAddressPrefixes: ["*"],
        destinationPortRange: "*",
      }),
      rule({ sourceAddressPrefixes: ["VirtualNetwork", "AzureLoadBalancer"] }),
      rule({ sourceAddressPrefixes: ["Storage"] }),
    ]),
    new Map(),
  );
  expect(chain("inbound-s1", text)).toEqual([
    "ip daddr { 172.16.0.0/16 } drop",
    "meta l4proto tcp ip saddr { 172.16.0.0/16, 168.63.129.16 } ip daddr { 172.16.0.0/16 } th dport { 6443 } accept",
  ]);
});

test("without a NAT gateway nothing goes out, and with one it goes out as its address", () => {
  const without = ruleset(network([]), new Map());
  expect(chain("translate", without)).toHaveLength(1);
  expect(chain("forward", without).join()).not.toContain("ip saddr 172.16.1.0/24 accept");
  const withOne = ruleset(network([], "203.0.113.9"), new Map());
  expect(chain("translate", withOne)).toContain(
    'oifname "out0" ip saddr 172.16.1.0/24 snat to 203.0.113.9',
  );
  expect(chain("forward", withOne)).toContain('oifname "out0" ip saddr 172.16.1.0/24 accept');
});

test("what comes from outside does not go back there, whatever sender it claims to have", () => {
  const lines = chain("forward", ruleset(network([], "203.0.113.9"), new Map()));
  const dropped = lines.indexOf('iifname "out0" oifname "out0" drop');
  expect(dropped).toBeGreaterThan(0);
  expect(dropped).toBeLessThan(
    lines.findIndex((line) => /^[io]ifname .* (accept|jump)/.test(line)),
  );
});

const up = { isUp: true, against: 0 };
const down = { isUp: false, against: 0 };

test("a machine turns when as many results in a row contradict its standing as the threshold says", () => {
  const once = judged(up, false, 2);
  expect(once.isUp).toBe(true);
  expect(judged(once, false, 2)).toEqual(down);
  expect(judged(judged(down, true, 2), true, 2)).toEqual(up);
});

test("one result that agrees makes the count begin anew", () => {
  const shaken = judged(judged(up, false, 2), true, 2);
  expect(judged(shaken, false, 2).isUp).toBe(true);
});

test("each HTTPS probe is a connection of its own, and only the first costs the machine a signature", async () => {
  // The platform's own address is there in the networks of machines alone.
  jest.replaceProperty(rulesets, "platformAddress", "127.0.0.1" as never);
  const { host, port, isResumed } = await httpsServer();
  const balancing = { address: host, port, protocol: "Tcp", backendPort: port, backends: [host] };
  const asked = {
    ...{ ...balancing, isFloating: false, isInternal: false },
    probe: { name: "api", protocol: "Https", port, requestPath: "/readyz" },
  };

  for (let turn = 0; turn < 3; turn += 1) expect(await probe(host, asked, 5_000)).toBe(true);

  expect(isResumed).toEqual([false, true, true]);
});
