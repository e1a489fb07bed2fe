import { ArmClient } from "../../../components/azure/resource-manager";
import { type MachineAnswer, machinesIn } from "../../../components/azure/state";

export interface Reference {
  readonly id: string;
}

interface Resource<Properties> extends Reference {
  readonly name: string;
  readonly zones?: readonly string[];
  readonly tags?: Readonly<Record<string, string>>;
  readonly properties: Properties & { readonly provisioningState?: string };
}

export type PublicAddress = Resource<{
  readonly ipAddress?: string;
  readonly ipConfiguration?: Reference;
  readonly natGateway?: Reference;
}>;

export type Frontend = Resource<{
  readonly privateIPAddress?: string;
  readonly publicIPAddress?: Reference;
}>;

export type Probe = Resource<{
  readonly protocol: string;
  readonly port: number;
  readonly requestPath?: string;
}>;

export type Rule = Resource<{
  readonly protocol: string;
  readonly frontendPort: number;
  readonly backendPort: number;
  readonly enableFloatingIP?: boolean;
  readonly frontendIPConfiguration?: Reference;
  readonly backendAddressPool?: Reference;
  readonly backendAddressPools?: readonly Reference[];
  readonly probe?: Reference;
}>;

export type BackendPool = Resource<{
  readonly loadBalancerBackendAddresses?: readonly {
    readonly properties?: { readonly ipAddress?: string };
  }[];
}>;

export type LoadBalancer = Resource<{
  readonly frontendIPConfigurations?: readonly Frontend[];
  readonly loadBalancingRules?: readonly Rule[];
  readonly probes?: readonly Probe[];
  readonly backendAddressPools?: readonly BackendPool[];
}>;

export type NatGateway = Resource<{ readonly publicIpAddresses?: readonly Reference[] }>;

export type Subnet = Resource<{
  readonly addressPrefix?: string;
  readonly natGateway?: Reference;
}>;

export type VirtualNetwork = Resource<{
  readonly addressSpace?: { readonly addressPrefixes?: readonly string[] };
  readonly subnets?: readonly Subnet[];
}>;

export type NetworkInterface = Resource<{
  readonly virtualMachine?: Reference;
  readonly ipConfigurations?: readonly Resource<{
    readonly privateIPAddress?: string;
    readonly loadBalancerBackendAddressPools?: readonly Reference[];
  }>[];
}>;

export interface AzureDisk extends Resource<{
  readonly diskSizeGB?: number;
  readonly diskState?: string;
}> {
  readonly sku?: { readonly name?: string };
  /** The VM that it is attached to. */
  readonly managedBy?: string;
}

interface AttachedDisk {
  readonly name: string;
  readonly diskSizeGB?: number;
  readonly managedDisk?: Reference & { readonly storageAccountType?: string };
}

export interface VirtualMachine extends Reference {
  readonly name: string;
  readonly zones?: readonly string[];
  readonly size: string;
  /** Such as `running`; undefined where Azure does not say. */
  readonly power?: string;
  readonly provisioningState?: string;
  /** Provisioning state of its bootstrap step. */
  readonly bootstrap?: string;
  readonly osDisk?: AttachedDisk;
  readonly dataDisks: readonly AttachedDisk[];
}

/** What Azure has in a resource group, at one moment. */
export interface AzureResources {
  readonly group: string;
  readonly region: string;
  readonly machines: readonly VirtualMachine[];
  readonly interfaces: readonly NetworkInterface[];
  readonly networks: readonly VirtualNetwork[];
  readonly gateways: readonly NatGateway[];
  readonly addresses: readonly PublicAddress[];
  readonly balancers: readonly LoadBalancer[];
  readonly disks: readonly AzureDisk[];
}

/**
 * @param group the id of the resource group
 * @returns undefined when Azure has no such group
 */
export async function getAzureResources(
  arm: ArmClient,
  group: string,
): Promise<AzureResources | undefined> {
  const found = await arm.get<{ readonly name: string; readonly location: string }>(
    group,
    { "api-version": "2024-03-01" },
    { name: "", location: "" },
  );
  if (found === undefined) return undefined;
  const list = <T extends Resource<object>>(path: string, version: string): Promise<T[]> =>
    arm.list<Resource<object>>(
      `${group}/providers/Microsoft.${path}`,
      { "api-version": version },
      { id: "", name: "", properties: {} },
    ) as Promise<T[]>;
  const networking = <T extends Resource<object>>(type: string) =>
    list<T>(`Network/${type}`, "2024-05-01");
  const [machines, interfaces, networks, gateways, addresses, balancers, disks] = await Promise.all(
    [
      machinesIn(arm, group),
      networking<NetworkInterface>("networkInterfaces"),
      networking<VirtualNetwork>("virtualNetworks"),
      networking<NatGateway>("natGateways"),
      networking<PublicAddress>("publicIPAddresses"),
      networking<LoadBalancer>("loadBalancers"),
      list<AzureDisk>("Compute/disks", "2024-03-02"),
    ],
  );
  return {
    ...{ group: found.name, region: found.location },
    machines: machines.map(machineOf),
    ...{ interfaces, networks, gateways, addresses, balancers, disks },
  };
}

function machineOf({ vm, step, state: { size, power } }: MachineAnswer): VirtualMachine {
  const { id, zones, name, properties } = vm as typeof vm & Pick<VirtualMachine, "id" | "zones">;
  const { osDisk, dataDisks = [] } = (properties.storageProfile ?? {}) as Partial<
    Pick<VirtualMachine, "osDisk" | "dataDisks">
  >;
  return {
    ...{ id, name, zones, size, power, osDisk, dataDisks },
    provisioningState: properties.provisioningState,
    bootstrap: step?.properties.provisioningState,
  };
}

/** Azure compares ids without regard to case. */
export const sameId = (one: string | undefined, other: string | undefined): boolean =>
  one !== undefined && one.toLowerCase() === other?.toLowerCase();

/** The resource that a reference is to. */
export const referred = <T extends { readonly id: string }>(
  resources: readonly T[],
  reference: { readonly id: string } | undefined,
): T | undefined => resources.find(({ id }) => sameId(id, reference?.id));
