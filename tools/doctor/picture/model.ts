import { stackOf } from "../../../components/azure/stack-tag";
import {
  type AzureResources,
  type LoadBalancer,
  referred,
  type Subnet as AzureSubnet,
} from "./azure";
import { type Address, type Balancer, balancersOf, otherAddresses } from "./balancers";
import { type ClusterAnswer, type Service, serviceOf, waitingServices } from "./cluster";
import { type Disk, looseDisks, type Machine, machinesOf, type Status } from "./machines";

/** All that a picture is made of, as it was read. */
export interface Seen {
  readonly stack: string;
  readonly azure: AzureResources;
  readonly cluster: ClusterAnswer;
}

export interface Subnet {
  readonly name: string;
  readonly range: string;
  /** By which NAT gateway it reaches the internet. */
  readonly egress?: string;
  /** The gateway's public addresses. */
  readonly egressAddresses: readonly string[];
}

export interface Zone {
  readonly title: string;
  readonly subnets: readonly Subnet[];
  readonly machines: readonly Machine[];
  /** Attached to no machine. */
  readonly disks: readonly Disk[];
}

/** What is not healthy and is drawn nowhere else. */
interface Problem {
  readonly about: string;
  readonly saw: string;
}

export interface Picture {
  readonly stack: string;
  readonly group: string;
  readonly region: string;
  /** When, as ISO 8601. */
  readonly time: string;
  /** Of kubelets. */
  readonly versions: readonly string[];
  /** Name and ranges. */
  readonly network: string;
  readonly status: Status;
  readonly problems: readonly Problem[];
  readonly balancers: readonly Balancer[];
  /** Of nothing that is drawn. */
  readonly addresses: readonly Address[];
  /** Of no zone, or of all, and attached to no machine. */
  readonly disks: readonly Disk[];
  /** Of no zone, as that of internal balancers. */
  readonly subnets: readonly Subnet[];
  readonly zones: readonly Zone[];
}

/** Lays what Azure has beside what Kubernetes says. */
export function pictureOf({ stack, azure, cluster }: Seen): Picture {
  const { report, objects } = cluster;
  const { group, region, networks } = azure;
  const machines = machinesOf(azure, cluster);
  const balancers = balancersOf(azure, objects?.services ?? []);
  const problems = problemsBeside(machines, balancers, azure, cluster);
  const disks = looseDisks(azure, objects?.volumes ?? []);
  const subnets = networks.flatMap(({ properties }) => properties.subnets ?? []);
  const zones = [
    ...new Set([
      ...machines.map(({ zone }) => zone),
      ...subnets.map(zoneOfSubnet).filter((zone) => zone !== ""),
    ]),
  ].sort();
  const subnetsOf = (zone: string) =>
    subnets.filter((one) => zoneOfSubnet(one) === zone).map((one) => subnetOf(one, azure));
  return {
    ...{ stack, group, region, time: report.time, problems },
    versions: [...new Set(machines.flatMap(({ version }) => version ?? []))].sort(),
    network: networks
      .map(({ name, properties }) =>
        [name, ...(properties.addressSpace?.addressPrefixes ?? [])].join(" "),
      )
      .join(", "),
    status: statusOf(cluster, [...machines.flatMap(({ reasons }) => reasons), ...problems].length),
    balancers,
    addresses: otherAddresses(azure),
    disks: disks.filter(({ zone }) => !zones.includes(zone)),
    subnets: subnetsOf(""),
    zones: zones.map((zone) => ({
      title: zone === "" ? "No zone" : `Zone ${zone}`,
      subnets: zone === "" ? [] : subnetsOf(zone),
      machines: machines.filter((one) => one.zone === zone),
      disks: disks.filter((one) => one.zone === zone),
    })),
  };
}

/** Azure's subnets have no zone; the program names those of machines by it. */
const zoneOfSubnet = ({ name }: AzureSubnet): string => /^nodes-(\d)$/.exec(name)?.[1] ?? "";

function subnetOf({ name, properties }: AzureSubnet, azure: AzureResources): Subnet {
  const gateway = referred(azure.gateways, properties.natGateway);
  return {
    name,
    range: properties.addressPrefix ?? "",
    egress: gateway && `${gateway.name}${gateway.zones?.length ? "" : " (no zone)"}`,
    egressAddresses: (gateway?.properties.publicIpAddresses ?? []).map(
      (one) => referred(azure.addresses, one)?.properties.ipAddress ?? "no address",
    ),
  };
}

function statusOf({ report, objects }: ClusterAnswer, problems: number): Status {
  if (objects === undefined) {
    const what = report.looked ? "API refuses" : "API does not answer";
    return { tone: "bad", word: `${what}: drawn is what Azure has` };
  }
  return problems === 0
    ? { tone: "good", word: "healthy" }
    : { tone: "bad", word: `not healthy: ${counted(problems, "problem")}` };
}

/** Problems of the cluster and of resources, beside those of machines. */
function problemsBeside(
  machines: readonly Machine[],
  balancers: readonly Balancer[],
  azure: AzureResources,
  { report, objects }: ClusterAnswer,
): Problem[] {
  const ofCluster = report.checks.flatMap(({ name, problems }) =>
    problems
      .filter(({ machine }) => !machines.some((one) => one.name === machine))
      .map(({ machine, saw }): Problem => ({ about: machine ?? name, saw })),
  );
  const waiting = waitingServices(objects?.services ?? []).map((about): Problem => ({
    about,
    saw: "this Service waits for a load balancer",
  }));
  const others = othersBalancers(azure, objects?.services ?? []);
  const emptyPools = balancers.flatMap(({ name, pools }) =>
    pools
      .filter(({ members }) => members.length === 0 && !others.includes(name))
      .map((pool): Problem => ({ about: name, saw: `no machine is in its pool ${pool.name}` })),
  );
  return [...ofCluster, ...waiting, ...failed(azure), ...emptyPools];
}

/**
 * Names of balancers that others have in the resource group: where it is not the stack's own, all of the stack has its
 * tag, and the cloud provider's lead to Services.
 */
function othersBalancers({ balancers }: AzureResources, services: readonly Service[]): string[] {
  const isOwn = ({ tags }: LoadBalancer) => stackOf(tags) !== undefined;
  const isOfServices = ({ properties }: LoadBalancer) =>
    properties.loadBalancingRules?.some((rule) => serviceOf(rule, services) !== undefined);
  return balancers.some(isOwn)
    ? balancers.filter((one) => !isOwn(one) && !isOfServices(one)).map(({ name }) => name)
    : [];
}

/** Resources that Azure has accepted, and then failed to make or change. */
const failed = (azure: AzureResources): Problem[] =>
  [
    ...azure.interfaces,
    ...azure.networks,
    ...azure.gateways,
    ...azure.addresses,
    ...azure.balancers,
    ...azure.disks,
  ]
    .filter(({ properties }) => properties.provisioningState === "Failed")
    .map(({ name }) => ({ about: name, saw: "Azure has failed to make or change it" }));

export const counted = (count: number, word: string): string =>
  `${count} ${word}${count === 1 ? "" : "s"}`;

/** The picture in one line. */
export function summaryOf({ zones, balancers, status }: Picture): string {
  const machines = zones.flatMap((zone) => zone.machines);
  return [
    counted(machines.length, "machine"),
    counted(zones.length, "zone"),
    counted(balancers.length, "load balancer"),
    status.word,
  ].join(", ");
}
