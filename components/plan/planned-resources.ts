import { apiRecord, apiZone } from "../api-server";
import { hasIssuer, hasOwnIdentity, ownAccounts, subjectOf } from "../settings/logins";
import { azureName } from "../settings/rules/identities";
import { dnsTagName } from "../settings/rules/names";
import type { Settings } from "../settings/settings";
import { parseSubnet } from "../settings/azure-ids";
import { balancerZone, type MachinePlan, privateApiAddress, zoneCidr } from "../settings/topology";
import { azureCloudAt } from "../azure/clouds";
import { subnetIdOf } from "../azure/existing-network";
import { type Hardware, osDiskProperties, plainHardware, spotProperties } from "../azure/hardware";
import { imageReferenceOf } from "../azure/image-offers";
import {
  apiBalancerName,
  dnsLabel,
  egressNames,
  gatewayZones,
  groupId,
  identityNames,
  issuerAccount,
  issuerContainer,
  networkNames,
} from "../azure/resource-names";
import type {
  PlannedContent,
  PlannedMachines,
  PlannedResource,
} from "../azure/policy-restrictions";
import { ownTag, tagsOf } from "../azure/stack-tag";
import { securityProfileOf } from "../machine/vm-profile";
import { tokenIssuerOf } from "../token-issuer";

/** A resource without what all of its kind have in common. */
type Kind = PlannedContent & {
  /** A part of another resource has neither tags nor a location, unless it is given one. */
  readonly parent?: string;
  readonly standsFor?: PlannedMachines;
};

const types = {
  address: "Microsoft.Network/publicIPAddresses",
  balancer: "Microsoft.Network/loadBalancers",
  gateway: "Microsoft.Network/natGateways",
  group: "Microsoft.Resources/subscriptions/resourceGroups",
  identity: "Microsoft.ManagedIdentity/userAssignedIdentities",
  interface: "Microsoft.Network/networkInterfaces",
  machine: "Microsoft.Compute/virtualMachines",
  network: "Microsoft.Network/virtualNetworks",
  routeTable: "Microsoft.Network/routeTables",
  securityGroup: "Microsoft.Network/networkSecurityGroups",
  storage: "Microsoft.Storage/storageAccounts",
  zone: "Microsoft.Network/privateDnsZones",
} as const;

const apiVersions: readonly (readonly [RegExp, string])[] = [
  [/^Microsoft\.Network\/privateDnsZones/, "2024-06-01"],
  [/^Microsoft\.Network\//, "2024-05-01"],
  [/^Microsoft\.Compute\//, "2024-11-01"],
  [/^Microsoft\.ManagedIdentity\//, "2023-01-31"],
  [/^Microsoft\.Storage\//, "2024-01-01"],
  [/^Microsoft\.Resources\//, "2024-03-01"],
];

const standard = { name: "Standard" };

/** Ids of what is in the cluster's resource group. */
type IdOf = (type: string, name: string) => string;

/**
 * One of each kind of what a stack makes of these settings: of machines one of each pool that differs, of subnets one of
 * machines' and the balancers'. Rules of security groups and roles are left out.
 */
export function plannedResources(
  settings: Settings,
  machines: readonly MachinePlan[],
  subscriptionId: string,
  hardware: ReadonlyMap<string, Hardware> = new Map(),
): PlannedResource[] {
  const group = groupId(settings, subscriptionId);
  const idOf: IdOf = (type, name) => `${group}/providers/${type}/${name}`;
  const { clusterName, location } = settings;
  const tags = tagsOf(settings);
  const ofZones = Object.entries(tags).filter(([name]) => dnsTagName.test(name));
  const tagsOfZones = Object.fromEntries(ofZones);
  const kinds: readonly Kind[] = [
    ...(settings.resourceGroup === ""
      ? [{ type: types.group, name: clusterName, tags: { ...tags, ...ownTag() } }]
      : []),
    ...(settings.nodeSubnets.length > 0 ? [] : networkOf(settings, idOf)),
    ...egressOf(settings, idOf),
    ...apiOf(settings, subscriptionId, idOf),
    ...identityOf(settings),
    ...machinesOf(settings, machines, hardware, idOf),
    ...workloadsOf(settings, subscriptionId, idOf),
  ];
  return kinds.map(({ parent, standsFor, ...kind }) => {
    const taken = kind.type.startsWith(types.zone) ? tagsOfZones : tags;
    const isTagged = parent === undefined || kind.location !== undefined;
    return {
      content: {
        ...(parent === undefined && { location }),
        ...(isTagged && Object.keys(taken).length > 0 && { tags: taken }),
        ...kind,
      },
      apiVersion: apiVersions.find(([of]) => of.test(kind.type))![1],
      parent,
      standsFor,
    };
  });
}

function networkOf(settings: Settings, idOf: IdOf): Kind[] {
  const { networkCidr, zones } = settings;
  const names = networkNames(settings.clusterName);
  const [egress] = egressNames(settings);
  const [zone = ""] = zones;
  const subnet = (name: string, range: string, more: object): Kind => ({
    type: `${types.network}/subnets`,
    name,
    parent: idOf(types.network, names.virtualNetwork),
    properties: {
      addressPrefix: zoneCidr(networkCidr, range),
      defaultOutboundAccess: false,
      networkSecurityGroup: { id: idOf(types.securityGroup, names.securityGroup) },
      ...more,
    },
  });
  return [
    {
      type: types.network,
      name: names.virtualNetwork,
      properties: { addressSpace: { addressPrefixes: [networkCidr] } },
    },
    { type: types.securityGroup, name: names.securityGroup },
    { type: types.routeTable, name: names.routeTable },
    subnet(`nodes-${zone}`, zone, {
      routeTable: { id: idOf(types.routeTable, names.routeTable) },
      ...(egress !== undefined && { natGateway: { id: idOf(types.gateway, egress) } }),
    }),
    subnet(names.balancerSubnet, balancerZone, {}),
  ];
}

function egressOf(settings: Settings, idOf: IdOf): Kind[] {
  const [name] = egressNames(settings);
  if (name === undefined) return [];
  const [zone] = gatewayZones(settings);
  return [
    addressOf(name, zone === undefined ? settings.zones : [zone]),
    {
      type: types.gateway,
      name,
      sku: standard,
      zones: zone === undefined ? [] : [zone],
      properties: { publicIpAddresses: [{ id: idOf(types.address, name) }] },
    },
  ];
}

const addressOf = (name: string, zones: readonly string[], more: object = {}): Kind => ({
  type: types.address,
  name,
  sku: standard,
  zones,
  properties: { publicIPAllocationMethod: "Static", ...more },
});

function apiOf(settings: Settings, subscriptionId: string, idOf: IdOf): Kind[] {
  const { clusterName, zones } = settings;
  const isPublic = settings.apiAccess === "public";
  const name = apiBalancerName(clusterName);
  const [theirs] = settings.nodeSubnets;
  const network =
    theirs === undefined
      ? idOf(types.network, networkNames(clusterName).virtualNetwork)
      : parseSubnet(theirs)?.networkId;
  const domainNameLabel = dnsLabel(clusterName, subscriptionId);
  const subnet = {
    id: theirs ?? `${network}/subnets/${networkNames(clusterName).balancerSubnet}`,
  };
  // In a network of others, which address it gets is found out at the same time as this is asked.
  const privateIPAddress =
    theirs === undefined ? privateApiAddress(settings.networkCidr) : undefined;
  const frontend = isPublic
    ? { properties: { publicIPAddress: { id: idOf(types.address, name) } } }
    : {
        zones,
        properties: { subnet, privateIPAddress },
      };
  const zone = apiZone(clusterName, subscriptionId);
  const inZone = { parent: idOf(types.zone, zone) };
  return [
    ...(isPublic ? [addressOf(name, zones, { dnsSettings: { domainNameLabel } })] : []),
    {
      type: types.balancer,
      name,
      sku: standard,
      properties: { frontendIPConfigurations: [{ name: "api", ...frontend }] },
    },
    ...(isPublic || settings.apiName !== ""
      ? []
      : [
          { type: types.zone, name: zone, location: "global" },
          {
            ...inZone,
            type: `${types.zone}/virtualNetworkLinks`,
            name: clusterName,
            location: "global",
            properties: { virtualNetwork: { id: network }, registrationEnabled: false },
          },
          { ...inZone, type: `${types.zone}/A`, name: apiRecord },
        ]),
  ];
}

/** One stands for all that are made. */
function identityOf(settings: Settings): Kind[] {
  const [name] = identityNames(settings);
  return name === undefined ? [] : [{ type: types.identity, name }];
}

function workloadsOf(settings: Settings, subscriptionId: string, idOf: IdOf): Kind[] {
  if (!hasIssuer(settings)) return [];
  const account = issuerAccount(settings.clusterName, subscriptionId);
  return [
    {
      type: types.storage,
      name: account,
      sku: { name: "Standard_ZRS" },
      properties: {
        allowBlobPublicAccess: true,
        allowCrossTenantReplication: false,
        allowSharedKeyAccess: true,
        minimumTlsVersion: "TLS1_2",
        supportsHttpsTrafficOnly: true,
      },
    },
    {
      type: `${types.storage}/blobServices/containers`,
      name: issuerContainer,
      parent: `${idOf(types.storage, account)}/blobServices/default`,
      properties: { publicAccess: "Blob" },
    },
    ...credentialOf(settings, subscriptionId, idOf),
  ];
}

/** Of an identity of this program's own: those of others are not in the resource group that is asked about. */
function credentialOf(settings: Settings, subscriptionId: string, idOf: IdOf): Kind[] {
  const { clusterName, resourceManagerEndpoint } = settings;
  const declared = settings.workloadIdentities
    .filter(({ identityId }) => identityId === "")
    .map((one) => [one, azureName(clusterName, one)] as const);
  const own = settings.machineIdentity || !hasOwnIdentity(settings) ? [] : ownAccounts(settings);
  const [first] = [...declared, ...own.map((one) => [one, clusterName] as const)];
  if (first === undefined) return [];
  const [account, identity] = first;
  return [
    {
      type: `${types.identity}/federatedIdentityCredentials`,
      name: azureName(clusterName, account),
      parent: idOf(types.identity, identity),
      properties: {
        issuer: tokenIssuerOf(settings, subscriptionId),
        subject: subjectOf(account),
        audiences: [azureCloudAt(resourceManagerEndpoint).tokenAudience],
      },
    },
  ];
}

function machinesOf(
  settings: Settings,
  machines: readonly MachinePlan[],
  hardware: ReadonlyMap<string, Hardware>,
  idOf: IdOf,
): Kind[] {
  const kinds = new Map<string, Kind>();
  for (const plan of machines) {
    const one = machineOf(settings, plan, hardware.get(plan.name));
    const key = JSON.stringify(one.properties).toLowerCase();
    const { standsFor, ...kind } = kinds.get(key) ?? one;
    const names = [...(standsFor?.names ?? []), plan.name];
    kinds.set(key, { ...kind, standsFor: { size: plan.size, names } });
  }
  const [first] = machines;
  return [...kinds.values(), ...(first === undefined ? [] : partsOf(settings, first, idOf))];
}

const machineOf = (settings: Settings, plan: MachinePlan, hardware = plainHardware): Kind => ({
  type: types.machine,
  name: plan.name,
  zones: [plan.zone],
  properties: {
    hardwareProfile: { vmSize: plan.size },
    ...spotProperties(plan),
    osProfile: { linuxConfiguration: { disablePasswordAuthentication: true } },
    storageProfile: {
      imageReference: imageReferenceOf(settings, hardware.architecture),
      ...(hardware.isNvmeOnly && { diskControllerType: "NVMe" }),
      osDisk: osDiskProperties(plan, settings),
    },
    securityProfile: securityProfileOf(settings),
  },
});

function partsOf(settings: Settings, { name, zone }: MachinePlan, idOf: IdOf): Kind[] {
  const network = idOf(types.network, networkNames(settings.clusterName).virtualNetwork);
  const id =
    settings.nodeSubnets.length > 0
      ? subnetIdOf(settings, zone)
      : `${network}/subnets/nodes-${zone}`;
  return [
    {
      type: types.interface,
      name: `${name}-nic`,
      properties: {
        enableIPForwarding: settings.cni === "none",
        ipConfigurations: [{ name: "node", properties: { subnet: { id } } }],
      },
    },
    {
      type: `${types.machine}/extensions`,
      name: "bootstrap",
      parent: idOf(types.machine, name),
      location: settings.location,
      properties: { publisher: "Microsoft.Azure.Extensions", type: "CustomScript" },
    },
  ];
}
