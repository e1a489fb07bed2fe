import { Address4 } from "ip-address";

import type { LocalDisk, OsDiskSku, Settings, Spot, Taint } from "./settings";

/** One machine of the plan, before anything of it exists. */
export interface MachinePlan {
  /** Name of the VM, its host and its node. */
  readonly name: string;
  readonly role: "control-plane" | "worker";
  /** Name of the worker's pool. */
  readonly pool?: string;
  readonly zone: string;
  readonly subnetCidr: string;
  readonly address: string;
  readonly size: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly osDiskSku: OsDiskSku;
  readonly osDiskSizeGb: number;
  /** Undefined for an OS disk in Azure's storage. */
  readonly ephemeralOsDisk?: LocalDisk;
  /** Undefined for the kubelet's own number. */
  readonly maxPods?: number;
  /** Undefined for a regular machine. */
  readonly spot?: Spot;
}

type Shape = Pick<
  Settings,
  | "clusterName"
  | "zones"
  | "networkCidr"
  | "controlPlaneCount"
  | "controlPlaneSize"
  | "schedulableControlPlanes"
  | "workerPools"
  | "osDiskSku"
  | "osDiskSizeGb"
>;

/** A /16 gives each zone a /24. */
const zoneBits = 8;

/** Azure keeps the first four addresses of a subnet, and its last. */
const firstFree = 4;

/** What a subnet holds below its pools: Azure's own addresses, and room for control planes. */
const firstPoolOffset = 16;

/** Every pool has its own part of a subnet, so that none moves when another grows. */
export const maxPools = 8;

const start = (cidr: string): Address4 => new Address4(cidr).startAddress();

/** What stands for a zone in the range of the subnet that all zones' internal balancers have. */
export const balancerZone = "0";

/** The node subnet of a zone: the range of 172.16.0.0/16 for zone 2 is 172.16.2.0/24. */
export function zoneCidr(networkCidr: string, zone: string): string {
  const bits = new Address4(networkCidr).subnetMask + zoneBits;
  const base = start(networkCidr).bigInt() + (BigInt(zone) << BigInt(32 - bits));
  return `${Address4.fromBigInt(base).correctForm()}/${bits}`;
}

const addressAt = (cidr: string, offset: number): string =>
  Address4.fromBigInt(start(cidr).bigInt() + BigInt(offset)).correctForm();

/** A zone as Azure's cloud provider and disk driver label Nodes with it. */
export const zoneLabelOf = ({ location }: Pick<Settings, "location">, zone: string): string =>
  `${location}-${zone}`;

/**
 * The address of a private API: the first free one of the balancers' subnet, which no Service has taken
 * before the cluster is there.
 */
export const privateApiAddress = (networkCidr: string): string =>
  addressAt(zoneCidr(networkCidr, balancerZone), firstFree);

const partOf = (networkCidr: string): number => {
  const subnetSize = 2 ** (32 - zoneBits - new Address4(networkCidr).subnetMask);
  return Math.floor((subnetSize - firstPoolOffset) / maxPools);
};

/**
 * How many machines of one pool a zone's subnet holds: 30 in a /24. The last pool ends at Azure's
 * own address.
 */
export const poolRoom = (networkCidr: string, position: number): number =>
  Math.max(0, partOf(networkCidr) - (position === maxPools - 1 ? 1 : 0));

/** The key by which kubeadm labels and taints the Nodes of control planes. */
export const controlPlaneMark = "node-role.kubernetes.io/control-plane";

/** The key by which AKS labels and taints spot nodes, and what is written for AKS knows them. */
export const spotMark = "kubernetes.azure.com/scalesetpriority";

const spotTaint: Taint = { key: spotMark, value: "spot", effect: "NoSchedule" };

const controlPlaneTaint: Taint = { key: controlPlaneMark, effect: "NoSchedule" };

/** Whether a machine is called like a control plane of this cluster, whether or not it is planned. */
export const isControlPlaneName = (
  { clusterName }: Pick<Settings, "clusterName">,
  name: string,
): boolean =>
  name.startsWith(`${clusterName}-cp-`) && /^\d+$/.test(name.slice(`${clusterName}-cp-`.length));

function controlPlanesOf(shape: Shape): MachinePlan[] {
  return Array.from({ length: shape.controlPlaneCount }, (_, index) => {
    const zone = shape.zones[index % shape.zones.length]!;
    const subnetCidr = zoneCidr(shape.networkCidr, zone);
    return {
      name: `${shape.clusterName}-cp-${index + 1}`,
      role: "control-plane",
      zone,
      subnetCidr,
      address: addressAt(subnetCidr, firstFree + index),
      size: shape.controlPlaneSize,
      labels: {},
      taints: shape.schedulableControlPlanes ? [] : [controlPlaneTaint],
      osDiskSku: shape.osDiskSku,
      osDiskSizeGb: shape.osDiskSizeGb,
    };
  });
}

function workersOf(shape: Shape): MachinePlan[] {
  const part = partOf(shape.networkCidr);
  return shape.workerPools.flatMap((pool, position) =>
    Array.from({ length: pool.count }, (_, index) => {
      const zone = pool.zones[(index + 1) % pool.zones.length]!;
      const subnetCidr = zoneCidr(shape.networkCidr, zone);
      const withinZone = Math.floor(index / pool.zones.length);
      return {
        name: `${shape.clusterName}-${pool.name}-${index + 1}`,
        role: "worker" as const,
        pool: pool.name,
        zone,
        subnetCidr,
        address: addressAt(subnetCidr, firstPoolOffset + position * part + withinZone),
        size: pool.size,
        labels: { ...pool.labels, ...(pool.spot && { [spotMark]: "spot" }) },
        taints: [...pool.taints, ...(pool.spot ? [spotTaint] : [])],
        osDiskSku: pool.osDiskSku,
        osDiskSizeGb: pool.osDiskSizeGb,
        ...(pool.ephemeralOsDisk && { ephemeralOsDisk: pool.ephemeralOsDisk }),
        ...(pool.maxPods !== undefined && { maxPods: pool.maxPods }),
        ...(pool.spot && { spot: pool.spot }),
      };
    }),
  );
}

/**
 * Every machine of the cluster, control planes first.
 *
 * A machine's zone and address follow from its own number and from its pool's position, never from
 * how many others there are: growing a pool, or adding one at the end, moves no machine.
 */
export const machinesOf = (shape: Shape): MachinePlan[] => [
  ...controlPlanesOf(shape),
  ...workersOf(shape),
];

/** Those on which the cluster's own pods may run that are at no particular machine: they tolerate these taints. */
export const machinesForAddOns = (shape: Shape): MachinePlan[] =>
  machinesOf(shape).filter(({ taints }) =>
    taints.every(
      ({ key, effect }) =>
        [controlPlaneMark, "CriticalAddonsOnly"].includes(key) || effect === "PreferNoSchedule",
    ),
  );
