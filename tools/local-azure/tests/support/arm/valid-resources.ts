import { account, Body, parseId, subscriptionPath } from "../../../arm/resources/resource";
import { typeOf, typeOfToken } from "../../../arm/types/types";
import { Properties } from "../../../plugins/protocol/values";
import { parametersOf } from "../../../provider/check";

export const subscription = subscriptionPath;
export const group = `${subscriptionPath}/resourceGroups/zoned`;
export const network = (path: string): string => `${group}/providers/Microsoft.Network/${path}`;
export const compute = (path: string): string => `${group}/providers/Microsoft.Compute/${path}`;
/** The id of something below the storage account; without a path that of the account. */
export const storage = (path: string): string =>
  `${group}/providers/Microsoft.Storage/storageAccounts/zonedbackups${path}`;

/** The id of a role definition, by its GUID. */
export const roleDefinition = (guid: string): string =>
  `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${guid}`;
export const reader = "acdd72a7-3385-48ef-bd42-f606fba81ae7";

const location = "westeurope";

/** A valid id and body of each kind. Later ones refer to earlier ones. */
export const valid = {
  group: [group, { location }],
  assignment: [
    `${group}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-4000-8000-000000000000`,
    { principalId: account.objectId, roleDefinitionId: roleDefinition(reader) },
  ],
  set: [
    compute("diskEncryptionSets/keys"),
    {
      location,
      identity: { type: "SystemAssigned" },
      activeKey: { keyUrl: "https://ours.vault.azure.net/keys/disks/1" },
    },
  ],
  disk: [
    compute("disks/data"),
    { location, zones: ["1"], creationData: { createOption: "Empty" }, diskSizeGB: 8 },
  ],
  storageAccount: [
    storage(""),
    { location, kind: "StorageV2", sku: { name: "Standard_ZRS" }, minimumTlsVersion: "TLS1_2" },
  ],
  registry: [
    `${group}/providers/Microsoft.ContainerRegistry/registries/zonedimages`,
    { location, sku: { name: "Premium" } },
  ],
  gallery: [compute("galleries/zoned"), { location }],
  definition: [
    compute("galleries/zoned/images/node"),
    {
      location,
      identifier: { publisher: "zoned", offer: "kubernetes", sku: "node" },
      osType: "Linux",
      osState: "Generalized",
      hyperVGeneration: "V2",
      features: [{ name: "SecurityType", value: "TrustedLaunch" }],
    },
  ],
  container: [storage("/blobServices/default/containers/etcd"), {}],
  securityGroup: [network("networkSecurityGroups/nsg"), { location }],
  rule: [
    network("networkSecurityGroups/nsg/securityRules/api"),
    {
      access: "Allow",
      direction: "Inbound",
      priority: 100,
      protocol: "Tcp",
      sourceAddressPrefix: "10.0.0.0/8",
      sourcePortRange: "*",
      destinationAddressPrefix: "*",
      destinationPortRange: "6443",
    },
  ],
  routeTable: [network("routeTables/rt"), { location }],
  natIp: [
    network("publicIPAddresses/nat-1"),
    { location, sku: { name: "Standard" }, publicIPAllocationMethod: "Static", zones: ["1"] },
  ],
  nat: [
    network("natGateways/nat-1"),
    {
      location,
      sku: { name: "Standard" },
      zones: ["1"],
      publicIpAddresses: [{ id: network("publicIPAddresses/nat-1") }],
    },
  ],
  vnet: [
    network("virtualNetworks/vnet"),
    { location, addressSpace: { addressPrefixes: ["172.16.0.0/16"] } },
  ],
  zone: [network("privateDnsZones/zoned-abc.internal"), { location: "global" }],
  link: [
    network("privateDnsZones/zoned-abc.internal/virtualNetworkLinks/vnet"),
    {
      location: "global",
      virtualNetwork: { id: network("virtualNetworks/vnet") },
      registrationEnabled: false,
    },
  ],
  record: [
    network("privateDnsZones/zoned-abc.internal/A/api"),
    { aRecords: [{ ipv4Address: "172.16.0.4" }], ttl: 300 },
  ],
  subnet: [
    network("virtualNetworks/vnet/subnets/nodes-1"),
    {
      addressPrefix: "172.16.1.0/24",
      networkSecurityGroup: { id: network("networkSecurityGroups/nsg") },
      routeTable: { id: network("routeTables/rt") },
      natGateway: { id: network("natGateways/nat-1") },
    },
  ],
  apiIp: [
    network("publicIPAddresses/api"),
    {
      location,
      sku: { name: "Standard" },
      publicIPAllocationMethod: "Static",
      zones: ["1", "2", "3"],
      dnsSettings: { domainNameLabel: "zoned-abc" },
    },
  ],
  balancer: [
    network("loadBalancers/api"),
    {
      location,
      sku: { name: "Standard" },
      frontendIPConfigurations: [
        { name: "api", publicIPAddress: { id: network("publicIPAddresses/api") } },
      ],
      backendAddressPools: [{ name: "cp" }],
      probes: [{ name: "readyz", protocol: "Https", port: 6443, requestPath: "/readyz" }],
      loadBalancingRules: [
        {
          name: "api",
          protocol: "Tcp",
          frontendPort: 6443,
          backendPort: 6443,
          frontendIPConfiguration: {
            id: network("loadBalancers/api/frontendIPConfigurations/api"),
          },
          backendAddressPools: [{ id: network("loadBalancers/api/backendAddressPools/cp") }],
          probe: { id: network("loadBalancers/api/probes/readyz") },
        },
      ],
    },
  ],
  nic: [
    network("networkInterfaces/cp-1-nic"),
    {
      location,
      ipConfigurations: [
        {
          name: "ip",
          subnet: { id: network("virtualNetworks/vnet/subnets/nodes-1") },
          privateIPAllocationMethod: "Static",
          privateIPAddress: "172.16.1.4",
          loadBalancerBackendAddressPools: [
            { id: network("loadBalancers/api/backendAddressPools/cp") },
          ],
        },
      ],
    },
  ],
  machine: [
    compute("virtualMachines/cp-1"),
    {
      location,
      zones: ["1"],
      hardwareProfile: { vmSize: "Standard_D2s_v5" },
      networkProfile: { networkInterfaces: [{ id: network("networkInterfaces/cp-1-nic") }] },
      osProfile: {
        computerName: "cp-1",
        adminUsername: "azureuser",
        customData: "I2Nsb3VkLWNvbmZpZw==",
        linuxConfiguration: {
          disablePasswordAuthentication: true,
          ssh: {
            publicKeys: [
              { path: "/home/azureuser/.ssh/authorized_keys", keyData: "ssh-ed25519 AAAAC3NzaC1l" },
            ],
          },
        },
      },
      securityProfile: { securityType: "TrustedLaunch" },
      storageProfile: {
        imageReference: {
          publisher: "Canonical",
          offer: "ubuntu-24_04-lts",
          sku: "server",
          version: "latest",
        },
        osDisk: {
          name: "cp-1-os",
          createOption: "FromImage",
          deleteOption: "Delete",
          managedDisk: { storageAccountType: "Premium_LRS" },
        },
      },
    },
  ],
  extension: [
    compute("virtualMachines/cp-1/extensions/bootstrap"),
    {
      location,
      publisher: "Microsoft.Azure.Extensions",
      type: "CustomScript",
      typeHandlerVersion: "2.1",
      settings: {},
      protectedSettings: { script: Buffer.from("join the cluster").toString("base64") },
    },
  ],
} as const satisfies Record<string, readonly [string, Body]>;

export type Kind = keyof typeof valid;

/** A valid body with these values at their paths, as `storageProfile.osDisk.name`; undefined removes one. */
export function withChange(kind: Kind, change: Body): Body {
  const body = structuredClone<Body>(valid[kind][1]);
  for (const [path, value] of Object.entries(change)) {
    const steps = path.split(".");
    const last = steps.pop()!;
    const parent = steps.reduce<Body>((at, step) => (at[step] ??= {}) as Body, body);
    if (value === undefined) delete parent[last];
    else parent[last] = value;
  }
  return body;
}

/** A type by its token, without azure-native before it. */
export const type = (name: string) => typeOfToken(`azure-native:${name}`)!;
/** What the engine names a request by. */
export const subject = {
  urn: "urn",
  type: "t",
  signal: new AbortController().signal,
  timeoutSeconds: 0,
};

/** The inputs of a program for a valid body. */
export const inputsOf = (kind: keyof typeof valid): Properties => {
  const [id, body] = valid[kind];
  return {
    ...(JSON.parse(JSON.stringify(body)) as Properties),
    ...parametersOf(typeOf(parseId(id)!.type)!, id),
  };
};
