import { spawnSync } from "node:child_process";

import type { RuleBody } from "../../../../arm/types/network/security-rule";
import type { Balanced, VirtualNetwork } from "../../../../machines/qemu/network/network-view";
import { markOf, probeKey, ruleset } from "../../../../machines/qemu/network/ruleset";

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

/** Of a Service, as the cloud provider makes it. */
const floating = { ...balanced, port: 80, backendPort: 80, isFloating: true };

const network = (
  rules?: RuleBody[],
  natAddress?: string,
  one: Balanced = balanced,
): VirtualNetwork => ({
  key: "k",
  ranges: ["172.16.0.0/16"],
  subnets: [
    {
      ...{ bridge: "s1", prefix: "172.16.1.0/24", gateway: "172.16.1.1" },
      ...{ rules, natAddress, isBehindFirewall: false },
    },
  ],
  balanced: [one],
  ...{ destinations: [], names: {} },
});

const chain = (name: string, text: string): string[] =>
  (new RegExp(`chain ${name} \\{\\n([^}]*(?:\\{[^}]*\\}[^}]*)*)\\n  \\}`).exec(text)?.[1] ?? "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

const healthy = (...backends: string[]) => new Map([[probeKey(balanced), backends]]);

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

test("connections are dealt to the healthy only, and to nobody when there is none", () => {
  const lines = (...backends: string[]) =>
    chain("balance", ruleset(network(), healthy(...backends))).slice(1);
  expect(lines()).toEqual([]);
  expect(lines("172.16.2.4")).toEqual([
    'iifname "out0" ip daddr 203.0.113.1 tcp dport 6443 dnat to 172.16.2.4:6443',
  ]);
  expect(lines("172.16.1.4", "172.16.2.4").join()).toContain(
    "{ 0 : 172.16.1.4 . 6443, 1 : 172.16.2.4 . 6443 }",
  );
});

test("with floating IP a connection keeps its address, and has the mark of a healthy machine", () => {
  const [first, second] = balanced.backends.map(markOf);
  const text = (...backends: string[]) =>
    ruleset(network([], undefined, floating), new Map([[probeKey(floating), backends]]));
  const marks = (...backends: string[]) =>
    chain("float", text(...backends)).filter((line) => line.includes("ct mark set"));

  expect(marks()).toEqual([]);
  expect(marks("172.16.2.4")[0]).toBe(
    `iifname "out0" ip daddr 203.0.113.1 tcp dport 80 ct state new ct mark set ${second}`,
  );
  expect(marks(...balanced.backends)[0]).toContain(
    `jhash ip saddr . tcp sport mod 2 map { 0 : ${first}, 1 : ${second} }`,
  );
  expect(text(...balanced.backends)).not.toContain("dnat");
});

test.each([balanced, floating, { ...balanced, isInternal: true }])("nft takes it (%j)", (one) => {
  const rules = [rule({}), rule({ protocol: "*", destinationPortRange: "30000-32767" })];
  const input = ruleset(
    network(rules, "203.0.113.9", one),
    new Map([[probeKey(one), one.backends]]),
  );
  const checked = spawnSync("unshare", ["--net", "nft", "--file", "-"], {
    input,
    encoding: "utf8",
  });
  expect(checked).toMatchObject({ status: 0, stderr: "" });
});
