import type { ResourceManager } from "../../../../arm/resource-manager";
import type { View } from "../../../../arm/resources/resource";
import {
  metadataOf,
  networksOf,
  publicNamesOf,
} from "../../../../machines/qemu/network/network-view";
import { newArm } from "../../../support/arm/fixture";
import { withChange, group, type Kind, network, valid } from "../../../support/arm/valid-resources";

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
  const balancer = network("loadBalancers/services");
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
      [ip, withChange("apiIp", { dnsSettings: undefined })],
      [balancer, body],
    ]);
    return networksOf(view)[0]?.balanced.filter(({ port }) => port === 80);
  };

  expect(await leads(valid.vnet[0])).toMatchObject([
    { backends: ["172.16.1.16"], isFloating: true },
  ]);
  expect(await leads(network("virtualNetworks/other"))).toEqual([]);
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
