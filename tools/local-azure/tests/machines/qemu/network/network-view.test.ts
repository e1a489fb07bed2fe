import type { ResourceManager } from "../../../../arm/resource-manager";
import type { View } from "../../../../arm/resources/resource";
import {
  metadataOf,
  networksOf,
  publicNamesOf,
  type VirtualNetwork,
} from "../../../../machines/qemu/network/network-view";
import { newArm } from "../../../support/arm/fixture";
import { group, type Kind, network, valid, withChange } from "../../../support/arm/valid-resources";
import type { RuleBody } from "../../../../arm/types/network/network-security-group";
import { judged, probe } from "../../../../machines/qemu/network/probes";
import * as rulesets from "../../../../machines/qemu/network/ruleset";
import { httpsServer } from "../../../support/simulated/fixture";

const kinds: readonly Kind[] = [
  ...(["group", "securityGroup", "rule", "routeTable", "natIp", "nat", "vnet", "subnet"] as const),
  ...(["apiIp", "balancer", "nic", "machine"] as const),
];

/** What there is when all of this was made. */
async function viewAfter(
  changes: Partial<Record<Kind, object>> = {},
  others: readonly Parameters<ResourceManager["put"]>[] = [],
): Promise<View> {
  const { arm } = newArm();
  for (const kind of kinds) {
    await arm.put(valid[kind][0], withChange(kind, { ...changes[kind] }));
  }
  for (const [id, body] of others) await arm.put(id, body);
  return arm.view;
}

test("a network has its subnets with gateway, egress and rules, and Azure's own rules come last", async () => {
  const [network] = networksOf(await viewAfter());
  expect(network?.subnets).toMatchObject([
    { prefix: "172.16.1.0/24", gateway: "172.16.1.1", natAddress: "203.0.113.1" },
  ]);
  const inbound = network?.subnets[0]?.rules?.filter(({ direction }) => direction === "Inbound");
  expect(inbound?.map(({ priority }) => priority)).toEqual([100, 65000, 65001, 65500]);
});

test("a balancer's rule leads to the interfaces in its pool, and its name to its address", async () => {
  const view = await viewAfter();
  expect(networksOf(view)[0]?.balanced).toMatchObject([
    {
      address: "203.0.113.2",
      port: 6443,
      backends: ["172.16.1.4"],
      probe: { requestPath: "/readyz" },
    },
  ]);
  expect(publicNamesOf(view)).toEqual({ "zoned-abc.westeurope.cloudapp.azure.com": "203.0.113.2" });
});

test("a pool that names addresses, as the cloud provider's, leads to those of its own network", async () => {
  const [balancer, other] = [network("loadBalancers/services"), network("virtualNetworks/other")];
  const pool = `${balancer}/backendAddressPools/machines`;
  const frontend = `${balancer}/frontendIPConfigurations/web`;
  const leads = async (virtualNetwork: string) => {
    const ip = network("publicIPAddresses/web");
    const body = {
      ...{ location: "westeurope", sku: { name: "Standard" } },
      frontendIPConfigurations: [{ name: "web", publicIPAddress: { id: ip } }],
      backendAddressPools: [
        {
          name: "machines",
          virtualNetwork: { id: virtualNetwork },
          loadBalancerBackendAddresses: [{ name: "workers-1", ipAddress: "172.16.1.16" }],
        },
      ],
      loadBalancingRules: [
        {
          ...{ name: "web", protocol: "Tcp", frontendPort: 80, backendPort: 80 },
          ...{ enableFloatingIP: true, backendAddressPool: { id: pool } },
          frontendIPConfiguration: { id: frontend },
        },
      ],
    };
    const view = await viewAfter({}, [
      [other, valid.vnet[1]],
      [ip, withChange("apiIp", { dnsSettings: undefined })],
      [balancer, body],
    ]);
    return networksOf(view)[0]?.balanced.filter(({ port }) => port === 80);
  };

  expect(await leads(valid.vnet[0])).toMatchObject([
    { backends: ["172.16.1.16"], isFloating: true },
  ]);
  expect(await leads(other)).toEqual([]);
});

test("an internal balancer leads where a public one does, from an address of the network's own", async () => {
  const inside = [
    {
      ...{ name: "api", subnet: { id: valid.subnet[0] } },
      ...{ privateIPAllocationMethod: "Static", privateIPAddress: "172.16.1.9" },
    },
  ];
  const [network] = networksOf(await viewAfter({ balancer: { frontendIPConfigurations: inside } }));

  const [rule] = network!.balanced;
  expect(rule).toMatchObject({
    ...{ address: "172.16.1.9", isInternal: true, port: 6443, backends: ["172.16.1.4"] },
  });
  expect(network!.destinations).toContain("172.16.1.9");
});

test("a network knows the names of the private zones that are linked to it, and of no others", async () => {
  const zone = (name: string) => network(`privateDnsZones/${name}`);
  const record = (ipv4Address: string) => ({
    properties: { ttl: 300, aRecords: [{ ipv4Address }] },
  });
  const names = async (virtualNetwork: string) => {
    const view = await viewAfter({}, [
      ...["ours.internal", "theirs.internal"].flatMap((name) => [
        [zone(name), { location: "global" }] as Parameters<ResourceManager["put"]>,
        [`${zone(name)}/A/api`, record("172.16.0.4").properties] as Parameters<
          ResourceManager["put"]
        >,
      ]),
      [
        `${zone("ours.internal")}/virtualNetworkLinks/spoke`,
        { location: "global", virtualNetwork: { id: virtualNetwork } },
      ],
    ]);
    return networksOf(view)[0]?.names;
  };

  expect(await names(valid.vnet[0])).toEqual({ "api.ours.internal": "172.16.0.4" });
});

test("a subnet is behind a firewall when its routes lead all that leaves the network to one", async () => {
  const behind = async (nextHopType: string, addressPrefix: string) => {
    const route = { name: "one", addressPrefix, nextHopType, nextHopIpAddress: "10.0.1.4" };
    const view = await viewAfter({ routeTable: { routes: [route] } });
    const [network] = networksOf(view);
    const isDestination = network?.destinations.includes("172.16.1.0/24");
    return [network?.subnets[0]?.isBehindFirewall, isDestination];
  };

  expect(await behind("VirtualAppliance", "0.0.0.0/0")).toEqual([true, true]);
  expect(await behind("VirtualAppliance", "10.9.0.0/16")).toEqual([false, false]);
  expect(await behind("VirtualNetworkGateway", "0.0.0.0/0")).toEqual([false, false]);
});

test("a machine's metadata has its identities, and the rules that lead to it", async () => {
  const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/cluster`;
  const view = await viewAfter({}, [
    [identity, { location: "westeurope" }],
    [
      valid.machine[0],
      withChange("machine", {
        identity: { type: "UserAssigned", userAssignedIdentities: [identity] },
      }),
    ],
  ]);

  const { principalId, clientId } = view.find(identity)!.body;
  expect(networksOf(view).flatMap((network) => metadataOf(network, view))).toMatchObject([
    {
      address: "172.16.1.4",
      identities: [{ resourceId: identity, principalId, clientId }],
      inboundRules: [
        { protocol: "tcp", frontendPort: 6443, backendPort: 6443, privateIpAddress: "172.16.1.4" },
      ],
    },
  ]);
});

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

const networkOf = (rules?: RuleBody[], natAddress?: string): VirtualNetwork => ({
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
  const lines = chain("inbound-s1", ruleset(networkOf([rule({})]), new Map()));
  expect(lines).toEqual([
    "meta l4proto tcp ip saddr { 198.18.0.0/24 } ip daddr { 172.16.0.0/16 } th dport { 6443 } accept",
  ]);
});

test("a denial drops, tags mean ranges, and a tag that means nothing here admits nobody", () => {
  const text = ruleset(
    networkOf([
      rule({
        access: "Deny",
        protocol: "*",
        sourceAddressPrefixes: ["*"],
        destinationPortRange: "*",
      }),
      rule({ sourceAddressPrefixes: ["VirtualNetwork", "AzureLoadBalancer"] }),
      rule({ access: "Deny", sourceAddressPrefixes: ["VirtualNetwork"] }),
      rule({ sourceAddressPrefixes: ["Storage"] }),
    ]),
    new Map(),
  );
  expect(chain("inbound-s1", text)).toEqual([
    "ip daddr { 172.16.0.0/16 } drop",
    "meta l4proto tcp ip saddr { 172.16.0.0/16, 168.63.129.16 } ip daddr { 172.16.0.0/16 } th dport { 6443 } accept",
    // Azure probes from an address that it counts among a network's.
    "meta l4proto tcp ip saddr { 172.16.0.0/16, 168.63.129.16 } ip daddr { 172.16.0.0/16 } th dport { 6443 } drop",
  ]);
});

test("without a NAT gateway nothing goes out, and with one it goes out as its address", () => {
  const without = ruleset(networkOf([]), new Map());
  expect(chain("translate", without)).toHaveLength(1);
  expect(chain("forward", without).join()).not.toContain("ip saddr 172.16.1.0/24 accept");
  const withOne = ruleset(networkOf([], "203.0.113.9"), new Map());
  expect(chain("translate", withOne)).toContain(
    'oifname "out0" ip saddr 172.16.1.0/24 snat to 203.0.113.9',
  );
  expect(chain("forward", withOne)).toContain('oifname "out0" ip saddr 172.16.1.0/24 accept');
});

test("what comes from outside does not go back there, whatever sender it claims to have", () => {
  const lines = chain("forward", ruleset(networkOf([], "203.0.113.9"), new Map()));
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
