import { apiPort } from "../api-server";
import { hasOwnIdentity } from "../settings/own-identity";
import { overlap } from "../settings/rules/ranges";
import type { Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";
import {
  type ExistingNetwork,
  type ExistingSubnet,
  keyOf,
  subnetIdOf,
} from "../azure/existing-network";
import { permits } from "../azure/rights";
import { type Flow, stoppedBy } from "../azure/security-rules";

/** What is wrong with a network of others. */
interface Request {
  readonly is: string;
  /** What to ask its owners for; where that is nothing, how the settings change. */
  readonly ask?: string;
  readonly fix?: string;
}

interface Asked {
  /** Undefined where Azure has none. */
  readonly network: ExistingNetwork | undefined;
  /** Machines that have no interface yet. */
  readonly created: readonly Pick<MachinePlan, "zone">[];
  /** The cluster's. */
  readonly subscriptionId: string;
}

/** Addresses that a subnet is to have left for internal balancers, each of which takes one. */
const forBalancers = 8;

/**
 * Why machines cannot be in the subnets of others that the settings name, each with what to ask for; at
 * the end all of that once more, as a text for the owners of the network. Nothing of theirs is changed.
 */
export function networkProblems(settings: Settings, asks: Asked): string[] {
  if (settings.nodeSubnets.length === 0) return [];
  const requests = requestsOf(settings, asks);
  const asked = [...new Set(requests.flatMap(({ ask }) => ask ?? []))];
  return [
    ...requests.map(({ is, ask, fix }) =>
      ask === undefined ? `${is}: ${fix}` : `${is}: ask for ${ask}`,
    ),
    ...(asked.length === 0
      ? []
      : [
          [
            `for the owners of the network, as one text: the Kubernetes cluster ${settings.clusterName} is to have machines in ` +
              `${[...new Set(settings.nodeSubnets)].join(", ")}, and needs`,
            ...asked.map((one) => `- ${one}`),
          ].join("\n      "),
        ]),
  ];
}

/** What a network of others does not survive: the loss of a zone whose NAT gateway serves other zones too. */
export function networkMessages(
  settings: Settings,
  network: ExistingNetwork | undefined,
): string[] {
  if (network === undefined) return [];
  return [...network.egress].flatMap(([id, { zone }]) => {
    const served = settings.zones.filter((one) => {
      const subnet = network.subnets.get(keyOf(subnetIdOf(settings, one)));
      return subnet?.gateway !== undefined && keyOf(subnet.gateway) === id;
    });
    if (zone === undefined || served.every((one) => one === zone)) return [];
    return [
      `the NAT gateway ${id} is in zone ${zone} and serves machines in ${served.map((one) => `zone ${one}`).join(", ")}: with zone ${zone}, ` +
        "all of them lose the API and the internet. A subnet with a NAT gateway for each zone, named by nodeSubnets in the order of zones, does not have that",
    ];
  });
}

function requestsOf(settings: Settings, { network, created, subscriptionId }: Asked): Request[] {
  const { location, nodeSubnets } = settings;
  const ids = [...new Set(nodeSubnets)];
  const missing = ids.filter((id) => !network?.subnets.has(keyOf(id)));
  if (network === undefined || missing.length > 0) {
    return missing.map((id) => ({
      is: `Azure has no subnet ${id}, or this login does not see it`,
      ask: `the subnet ${id}, and the role Reader on its virtual network for who runs Pulumi`,
    }));
  }
  const subnets = ids.map((id) => network.subnets.get(keyOf(id))!);
  return [
    ...(network.location === location
      ? []
      : [
          {
            is: `the network ${network.id} is in ${network.location}, and machines in ${location} can be in networks of that region alone`,
            fix: "name subnets there, or take the network's region (pulumi config set location)",
          },
        ]),
    ...(keyOf(network.id).startsWith(`/subscriptions/${keyOf(subscriptionId)}/`)
      ? []
      : [
          {
            is: `the network ${network.id} is in another subscription than the cluster, ${subscriptionId}, where Azure's cloud provider looks for it`,
            fix: "name subnets of that subscription, or deploy into the network's (pulumi config set azure-native:subscriptionId ID)",
          },
        ]),
    ...rightsIn(settings, network),
    ...overlaps(settings, network),
    ...subnets.flatMap((subnet) => [
      ...ofSubnet(subnet),
      ...egressOf(subnet, network),
      ...roomIn(
        subnet,
        created.filter(({ zone }) => keyOf(subnetIdOf(settings, zone)) === keyOf(subnet.id)),
      ),
    ]),
    ...groupsOf(settings, subnets, network),
  ];
}

function rightsIn(settings: Settings, { id, permissions }: ExistingNetwork): Request[] {
  const may = (action: string) => permissions.length === 0 || permits(permissions, action);
  const join = "Microsoft.Network/virtualNetworks/subnets/join/action";
  return [
    ...(may(join)
      ? []
      : [
          {
            is: `the login may not put machines into ${id}`,
            ask: `a role with ${join}, such as Network Contributor, on ${id} for who runs Pulumi`,
          },
        ]),
    ...(!hasOwnIdentity(settings) || may("Microsoft.Authorization/roleAssignments/write")
      ? []
      : [
          {
            is: `the login may not assign roles in ${id}, which the cluster's identity needs there`,
            fix: "name an identity that has them (pulumi config set identityId ID)",
          },
        ]),
  ];
}

function overlaps({ podCidr, serviceCidr }: Settings, { id, ranges }: ExistingNetwork): Request[] {
  return Object.entries({ podCidr, serviceCidr }).flatMap(([key, value]) => {
    const other = ranges.find((range) => overlap(range, value));
    if (other === undefined) return [];
    return {
      is: `${key} is ${value}, expected a range apart from ${other}, which the network ${id} has or is peered with`,
      fix: `pulumi config set ${key} RANGE`,
    };
  });
}

const ofSubnet = ({ id, delegations, securityGroup }: ExistingSubnet): Request[] => [
  ...(delegations.length === 0
    ? []
    : [
        {
          is: `the subnet ${id} is delegated to ${delegations.join(", ")}, and Azure puts no machines there`,
          ask: `a subnet without a delegation, in place of ${id}`,
        },
      ]),
  ...(securityGroup === undefined
    ? [
        {
          is: `the subnet ${id} has no network security group, without which nothing reaches a Standard balancer's machines`,
          ask: `a network security group on ${id}`,
        },
      ]
    : []),
];

/** Machines reach the API at its public address, and answer from it: both have to go by a NAT gateway. */
function egressOf(
  { id, gateway, routeTable }: ExistingSubnet,
  network: ExistingNetwork,
): Request[] {
  const routes = network.routes.get(keyOf(routeTable ?? "")) ?? [];
  const away = routes.find(
    ({ properties: { addressPrefix, nextHopType } }) =>
      addressPrefix === "0.0.0.0/0" && nextHopType !== "Internet",
  );
  const ask = `a NAT gateway on ${id}, and no route 0.0.0.0/0 but to Internet`;
  if (away !== undefined) {
    const { name, properties } = away;
    return [
      {
        is:
          `the route ${name} of the subnet ${id} leads 0.0.0.0/0 to ${properties.nextHopType}: answers to who asks the API at its public address ` +
          "would leave another way than the questions came",
        ask,
      },
    ];
  }
  if (gateway !== undefined) return [];
  return [
    {
      is: `the subnet ${id} has no NAT gateway, and machines there no way to the API and to packages`,
      ask,
    },
  ];
}

function roomIn({ id, free }: ExistingSubnet, created: readonly unknown[]): Request[] {
  const needed = created.length + forBalancers;
  if (created.length === 0 || free >= needed) return [];
  return [
    {
      is: `the subnet ${id} has ${free} free addresses, and this change needs ${created.length} for machines and ${forBalancers} for internal balancers`,
      ask: `a subnet with ${needed} free addresses, in place of ${id}`,
    },
  ];
}

/** Azure's cloud provider knows one security group, to which it adds the rules of Services. */
function groupsOf(
  settings: Settings,
  subnets: readonly ExistingSubnet[],
  network: ExistingNetwork,
): Request[] {
  const groups = [
    ...new Set(subnets.flatMap(({ securityGroup }) => securityGroup ?? []).map(keyOf)),
  ];
  const [first, second] = groups;
  if (second !== undefined) {
    return [
      {
        is: `the subnets have ${groups.length} network security groups (${groups.join(", ")}), and Azure's cloud provider knows one`,
        ask: `one network security group on all of ${subnets.map(({ id }) => id).join(", ")}`,
      },
    ];
  }
  if (first === undefined) return [];
  const nodes = subnets.flatMap(({ ranges }) => ranges);
  const egress = [...network.egress.values()].flatMap(({ ranges }) => ranges);
  return flowsOf(settings, nodes, egress).flatMap(({ flow, why }) => {
    const rule = stoppedBy(flow, network.rules.get(first) ?? [], network.ranges);
    if (rule === undefined) return [];
    const { direction, protocol, from, to, port } = flow;
    const packets = `${direction.toLowerCase()} ${protocol.toUpperCase()} ${port} from ${from} to ${to}`;
    return {
      is: `the rule ${rule.name} (priority ${rule.properties.priority}) of ${first} stops ${packets}, by which ${why}`,
      ask: `a rule in ${first} before ${rule.name} that allows ${packets} (${why})`,
    };
  });
}

interface NeededFlow {
  readonly flow: Flow;
  readonly why: string;
}

function flowsOf(
  { apiAccessCidrs, sshAccessCidrs, cni }: Settings,
  nodes: readonly string[],
  egress: readonly string[],
): NeededFlow[] {
  const inbound = (froms: readonly string[], port: number, why: string): NeededFlow[] =>
    froms.flatMap((from) =>
      nodes.map((to) => ({ flow: { direction: "Inbound", protocol: "Tcp", from, to, port }, why })),
    );
  const among: readonly (readonly [Flow["protocol"], number, string])[] = [
    ["Tcp", apiPort, "machines ask the API"],
    ["Tcp", 2379, "API servers ask etcd"],
    ["Tcp", 2380, "members of etcd talk to each other"],
    ["Tcp", 10250, "the API asks kubelets"],
    // Linux's own port of VXLAN, which flannel keeps.
    ...(cni === "none" ? [] : [["Udp", 8472, "pods talk to each other, in VXLAN"] as const]),
  ];
  return [
    ...among.flatMap(([protocol, port, why]) =>
      nodes.flatMap((from) =>
        nodes.flatMap((to) =>
          (["Outbound", "Inbound"] as const).map((direction) => ({
            flow: { direction, protocol, from, to, port },
            why,
          })),
        ),
      ),
    ),
    ...inbound(["AzureLoadBalancer"], apiPort, "the API's balancer probes control planes"),
    ...inbound(apiAccessCidrs, apiPort, "operators reach the API"),
    ...inbound(egress, apiPort, "machines reach the API through their egress"),
    ...inbound(sshAccessCidrs, 22, "operators reach SSH"),
    ...nodes.map((from): NeededFlow => ({
      flow: { direction: "Outbound", protocol: "Tcp", from, to: "Internet", port: 443 },
      why: "machines get packages and images, and the cloud provider asks Azure",
    })),
  ];
}
