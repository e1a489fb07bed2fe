import * as pulumi from "@pulumi/pulumi";

import { additionsTo, tagged, withAdditions } from "../../../components/azure/additions";
import { shownAs, ShownResource } from "../../../components/azure/shown";
import { digest } from "../../../components/digest";
import { Recorder, valueOf } from "../../support/record";

type Properties = Readonly<Record<string, unknown>>;

const group = "zoned-test";
const settings = { clusterName: group, resourceGroup: "" };
const identities = (name: string, inGroup = group) =>
  `/subscriptions/s/resourceGroups/${inGroup}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${name}`;
const own = identities(group);
const policy = identities("policy", "theirs");
const earlier = identities("earlier", "theirs");
const kubelets = identities("kubelets", "theirs");
const failed = identities("failed", "Theirs");
const former = { identityId: earlier, kubeletIdentityId: kubelets };

beforeEach(() => Recorder.start());

/** What is sent of a resource when Azure shows it like this. */
const sent = (token: string, props: Properties, shown: Omit<ShownResource, "name">) => {
  const type = `azure-native:${token}`;
  const { name = "" } = additionsTo(settings, former)[type] ?? {};
  const given = { [name]: "It", ...props };
  const all = new Map([[shownAs(type, "it"), { name: "it", ...shown }]]);
  const output = pulumi.output(withAdditions(type, given, additionsTo(settings, former), all));
  return valueOf(output as pulumi.Output<unknown>).then((sentNow) => {
    const { [name]: _, ...others } = sentNow as Properties;
    return JSON.parse(JSON.stringify(others));
  });
};

it.each([
  "resources:ResourceGroup",
  "managedidentity:UserAssignedIdentity",
  "storage:StorageAccount",
  "compute:Gallery",
  "compute:GalleryImage",
  "compute:GalleryImageVersion",
  "privatedns:PrivateZone",
  "privatedns:VirtualNetworkLink",
  "network:VirtualNetwork",
  "network:NetworkSecurityGroup",
  "network:RouteTable",
  "network:PublicIPAddress",
  "network:NatGateway",
  "network:LoadBalancer",
  "network:NetworkInterface",
  "compute:VirtualMachine",
  "compute:VirtualMachineExtension",
])("keeps tags of others on a %s", async (type) => {
  const tags = { owner: "firm" };

  expect(await sent(type, {}, { tags })).toEqual({ tags });
});

it.each<[what: string, type: string, props: Properties, shown: Properties, expected: Properties]>([
  [
    "tags, but none that the program has written, and in no case twice",
    "compute:VirtualMachine",
    { tags: { "zoned-created-at": "now" } },
    { tags: { owner: "firm", "Zoned-Made": "then", "zoned-drained": "then" } },
    { tags: { owner: "firm", "zoned-created-at": "now" } },
  ],
  [
    "tags where the program has none",
    "network:NatGateway",
    {},
    { tags: { a: "b" } },
    { tags: { a: "b" } },
  ],
  [
    "addresses and prefixes of a gateway",
    "network:NatGateway",
    { publicIpAddresses: [{ id: "/own" }] },
    {
      properties: {
        publicIpAddresses: [{ id: "/own" }, { id: "/theirs" }],
        publicIpPrefixes: [{ id: "/prefix" }],
      },
    },
    {
      publicIpAddresses: [{ id: "/own" }, { id: "/theirs" }],
      publicIpPrefixes: [{ id: "/prefix" }],
    },
  ],
  [
    "identities beside the program's, in Azure's order",
    "compute:VirtualMachine",
    { identity: { type: "UserAssigned", userAssignedIdentities: [own] } },
    {
      identity: {
        type: "SystemAssigned, UserAssigned",
        principalId: "p",
        userAssignedIdentities: { [policy]: {}, [own.toUpperCase()]: {} },
      },
    },
    {
      identity: { type: "SystemAssigned, UserAssigned", userAssignedIdentities: [policy, own] },
    },
  ],
  [
    "the identity of a machine, to which the program gives none",
    "compute:VirtualMachine",
    { identity: { type: "None" } },
    { identity: { type: "SystemAssigned", principalId: "p", tenantId: "t" } },
    { identity: { type: "SystemAssigned" } },
  ],
  [
    "others' identities where the program takes away its own",
    "compute:VirtualMachine",
    { identity: { type: "None" } },
    { identity: { type: "UserAssigned", userAssignedIdentities: { [own]: {}, [policy]: {} } } },
    { identity: { type: "UserAssigned", userAssignedIdentities: [policy] } },
  ],
  [
    "others' identities where the program takes away the one that the settings named before",
    "compute:VirtualMachine",
    { identity: { type: "UserAssigned", userAssignedIdentities: [own] } },
    { identity: { type: "UserAssigned", userAssignedIdentities: { [earlier]: {}, [policy]: {} } } },
    { identity: { type: "UserAssigned", userAssignedIdentities: [policy, own] } },
  ],
  [
    "others' identities where the program takes away kubelets' own and others'",
    "compute:VirtualMachine",
    { identity: { type: "None" } },
    {
      identity: {
        type: "UserAssigned",
        userAssignedIdentities: { [`${own}-kubelet`]: {}, [policy]: {}, [kubelets]: {} },
      },
    },
    { identity: { type: "UserAssigned", userAssignedIdentities: [policy] } },
  ],
  [
    "others' identities where the program takes away one of an update that failed, by the machine's tag",
    "compute:VirtualMachine",
    { identity: { type: "UserAssigned", userAssignedIdentities: [own] } },
    {
      tags: { "zoned-identities": `${digest("another")} ${digest(failed.toLowerCase())}` },
      identity: {
        type: "UserAssigned",
        userAssignedIdentities: { [failed.replace("/resourceG", "/resourceg")]: {}, [policy]: {} },
      },
    },
    { identity: { type: "UserAssigned", userAssignedIdentities: [policy, own] } },
  ],
  [
    "regions that an image is copied to besides, by whose names for people Azure shows them",
    "compute:GalleryImageVersion",
    { publishingProfile: { targetRegions: [{ name: "westeurope", regionalReplicaCount: 1 }] } },
    {
      properties: {
        publishingProfile: {
          publishedDate: "2026-11-27",
          targetRegions: [
            { name: "North Europe", regionalReplicaCount: 2, storageAccountType: "Standard_LRS" },
            { name: "West Europe", regionalReplicaCount: 1, storageAccountType: "Standard_ZRS" },
          ],
        },
      },
    },
    {
      publishingProfile: {
        targetRegions: [
          { name: "North Europe", regionalReplicaCount: 2, storageAccountType: "Standard_LRS" },
          { name: "westeurope", regionalReplicaCount: 1 },
        ],
      },
    },
  ],
  [
    "a second interface of a machine",
    "compute:VirtualMachine",
    { networkProfile: { networkInterfaces: [{ id: "/one", primary: true }] } },
    {
      properties: {
        networkProfile: {
          networkInterfaces: [
            { id: "/One", properties: { primary: true, deleteOption: "Detach" } },
            { id: "/two", properties: { primary: false, deleteOption: "Detach" } },
          ],
        },
      },
    },
    {
      networkProfile: {
        networkInterfaces: [
          { id: "/one", primary: true },
          { id: "/two", primary: false, deleteOption: "Detach" },
        ],
      },
    },
  ],
  [
    "all that others have an interface belong to",
    "network:NetworkInterface",
    { ipConfigurations: [{ name: "node", loadBalancerBackendAddressPools: [{ id: "/api" }] }] },
    {
      properties: {
        networkSecurityGroup: { id: "/nsg", properties: {} },
        dnsSettings: { dnsServers: ["10.0.0.4"], internalDomainNameSuffix: "x" },
        ipConfigurations: [
          {
            name: "node",
            id: "/node",
            etag: "e",
            properties: {
              provisioningState: "Succeeded",
              applicationGatewayBackendAddressPools: [{ id: "/web" }],
              applicationSecurityGroups: [{ id: "/asg" }],
              gatewayLoadBalancer: { id: "/gateway" },
              loadBalancerBackendAddressPools: [{ id: "/kubernetes" }, { id: "/api" }],
              loadBalancerInboundNatRules: [{ id: "/ssh", etag: "e", properties: {} }],
              publicIPAddress: { id: "/ip" },
            },
          },
        ],
      },
    },
    {
      networkSecurityGroup: { id: "/nsg" },
      dnsSettings: { dnsServers: ["10.0.0.4"] },
      ipConfigurations: [
        {
          name: "node",
          applicationGatewayBackendAddressPools: [{ id: "/web" }],
          applicationSecurityGroups: [{ id: "/asg" }],
          gatewayLoadBalancer: { id: "/gateway" },
          loadBalancerBackendAddressPools: [{ id: "/kubernetes" }, { id: "/api" }],
          loadBalancerInboundNatRules: [{ id: "/ssh" }],
          publicIPAddress: { id: "/ip" },
        },
      ],
    },
  ],
  [
    "parts of a load balancer, as a program may send them",
    "network:LoadBalancer",
    { probes: [{ name: "readyz", port: 6443 }] },
    {
      properties: {
        probes: [
          { name: "readyz", id: "/readyz", properties: { port: 6443, numberOfProbes: 1 } },
          {
            name: "theirs",
            id: "/theirs",
            etag: "e",
            type: "t",
            properties: { port: 80, provisioningState: "Succeeded", loadBalancingRules: [] },
          },
        ],
      },
    },
    {
      probes: [
        { name: "readyz", port: 6443 },
        { name: "theirs", id: "/theirs", port: 80 },
      ],
    },
  ],
  [
    "members of others' pools by their addresses",
    "network:LoadBalancer",
    { backendAddressPools: [{ name: "control-plane" }] },
    {
      properties: {
        backendAddressPools: [
          { name: "control-plane", properties: { loadBalancerBackendAddresses: [{ name: "cp" }] } },
          {
            name: "theirs",
            properties: {
              backendIPConfigurations: [],
              loadBalancerBackendAddresses: [
                {
                  name: "one",
                  properties: { ipAddress: "10.0.0.4", inboundNatRulesPortMapping: [] },
                },
              ],
            },
          },
        ],
      },
    },
    {
      backendAddressPools: [
        { name: "control-plane" },
        {
          name: "theirs",
          loadBalancerBackendAddresses: [{ name: "one", ipAddress: "10.0.0.4" }],
        },
      ],
    },
  ],
  [
    "what a policy sets on a network, whatever the SDK sends by default",
    "network:VirtualNetwork",
    { addressSpace: { addressPrefixes: ["172.16.0.0/16"] }, enableDdosProtection: false },
    {
      properties: {
        addressSpace: { addressPrefixes: ["172.16.0.0/16", "10.0.0.0/16"] },
        ddosProtectionPlan: { id: "/plan" },
        dhcpOptions: { dnsServers: ["10.0.0.4"] },
        enableDdosProtection: true,
        encryption: { enabled: true, enforcement: "AllowUnencrypted" },
        privateEndpointVNetPolicies: "Basic",
      },
    },
    {
      addressSpace: { addressPrefixes: ["172.16.0.0/16", "10.0.0.0/16"] },
      ddosProtectionPlan: { id: "/plan" },
      dhcpOptions: { dnsServers: ["10.0.0.4"] },
      enableDdosProtection: true,
      encryption: { enabled: true, enforcement: "AllowUnencrypted" },
      privateEndpointVNetPolicies: "Basic",
    },
  ],
  [
    "endpoints and delegations of a subnet, and no gateway in place of its own",
    "network:Subnet",
    { natGateway: { id: "/own" }, privateEndpointNetworkPolicies: "Disabled" },
    {
      properties: {
        natGateway: { id: "/before" },
        routeTable: { id: "/firewall" },
        serviceEndpoints: [{ service: "Microsoft.Storage", provisioningState: "Succeeded" }],
        delegations: [
          { name: "d", properties: { serviceName: "s", provisioningState: "Succeeded" } },
        ],
        privateEndpointNetworkPolicies: "Enabled",
      },
    },
    {
      natGateway: { id: "/own" },
      routeTable: { id: "/firewall" },
      serviceEndpoints: [{ service: "Microsoft.Storage", provisioningState: "Succeeded" }],
      delegations: [{ name: "d", serviceName: "s" }],
      privateEndpointNetworkPolicies: "Enabled",
    },
  ],
  [
    "a reverse name beside the label of an address",
    "network:PublicIPAddress",
    { dnsSettings: { domainNameLabel: "api" } },
    {
      properties: { dnsSettings: { domainNameLabel: "api", fqdn: "f", reverseFqdn: "r" } },
    },
    { dnsSettings: { domainNameLabel: "api", reverseFqdn: "r" } },
  ],
  [
    "the third zone of an address that is to be in two",
    "network:PublicIPAddress",
    { zones: ["2", "1"] },
    { zones: ["1", "2", "3"] },
    { zones: ["1", "2", "3"] },
  ],
  [
    "the third zone of an internal frontend that is to be in two",
    "network:LoadBalancer",
    { frontendIPConfigurations: [{ name: "api", subnet: { id: "s" }, zones: ["2", "1"] }] },
    {
      properties: {
        frontendIPConfigurations: [
          { name: "api", properties: { subnet: { id: "s" } }, zones: ["1", "2", "3"] },
        ],
      },
    },
    {
      frontendIPConfigurations: [{ name: "api", subnet: { id: "s" }, zones: ["1", "2", "3"] }],
    },
  ],
])("keeps %s", async (_what, type, props, shown, expected) => {
  expect(await sent(type, props, shown)).toEqual(expected);
});

it("sends nothing of Azure's defaults, which would be a change each time", async () => {
  const shown = {
    properties: {
      ddosSettings: { protectionMode: "VirtualNetworkInherited" },
      idleTimeoutInMinutes: 4,
      ipTags: [],
    },
  };

  expect(await sent("network:PublicIPAddress", {}, shown)).toEqual({});
  expect(
    await sent("network:RouteTable", {}, { properties: { disableBgpRoutePropagation: false } }),
  ).toEqual({});
});

it("finds the step of a machine whose name is an output", async () => {
  const vmName = pulumi.output("it");
  const props = { vmName, tags: { "zoned-bootstrap-requested-at": "now" } };

  const { tags } = await sent("compute:VirtualMachineExtension", props, {
    tags: { owner: "firm" },
  });

  expect(tags).toEqual({ owner: "firm", "zoned-bootstrap-requested-at": "now" });
});

describe("the tags of the settings", () => {
  const tagsOf = async (type: string, props: Properties) =>
    (
      (await valueOf(
        pulumi.output(
          tagged(type, props, { owner: "firm", "zoned-drained": "x" }, additionsTo(settings)),
        ),
      )) as Properties
    )["tags"];

  it("are on a resource beside those of the program, which win", async () => {
    const props = { tags: { "zoned-drained": "now" } };

    expect(await tagsOf("azure-native:compute:VirtualMachine", props)).toEqual({
      owner: "firm",
      "zoned-drained": "now",
    });
  });

  it("are on a private zone and its link but for those whose names Azure DNS drops, which no update would end", async () => {
    const ofDns = { "Cost Center": "1", "cost:center": "2", "(x)": "3", "2nd": "4", Größe: "5" };
    const given = { ...ofDns, "cost-center.v2": "6", _owner: "firm" };
    const on = async (type: string) =>
      (
        (await valueOf(pulumi.output(tagged(type, {}, given, additionsTo(settings))))) as Properties
      )["tags"];

    for (const type of ["PrivateZone", "VirtualNetworkLink"]) {
      expect(await on(`azure-native:privatedns:${type}`)).toEqual({
        "cost-center.v2": "6",
        _owner: "firm",
      });
    }
    expect(await on("azure-native:compute:VirtualMachine")).toEqual(given);
  });

  it("are on no subnet, which takes none", async () => {
    expect(await tagsOf("azure-native:network:Subnet", {})).toBeUndefined();
  });

  it("go when they have left the settings, and others' stay", async () => {
    const type = "azure-native:network:RouteTable";
    const shown = new Map([
      [shownAs(type, "it"), { name: "it", tags: { Owner: "firm", policy: "theirs" } }],
    ]);
    const given = { routeTableName: "it" };
    const { tags } = (await valueOf(
      pulumi.output(withAdditions(type, given, additionsTo(settings, { tags: ["owner"] }), shown)),
    )) as Properties;

    expect(tags).toEqual({ policy: "theirs" });
  });
});

it("takes its own gateway from a subnet that is to leave by routes, and leaves somebody else's there", async () => {
  const gateway = (name: string) => ({ id: `/providers/Microsoft.Network/natGateways/${name}` });
  const withGateway = (name: string) =>
    sent("network:Subnet", {}, { properties: { natGateway: gateway(name) } });

  expect(await withGateway("Zoned-test-egress-1")).toEqual({});
  expect(await withGateway("hub")).toEqual({ natGateway: gateway("hub") });
});
