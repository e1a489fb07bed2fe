import { Address4 } from "ip-address";

import { findings, toSet } from "../settings/problem";
import { withoutProxy } from "../settings/proxy";
import { isPrivate, overlap } from "../settings/rules/ranges";
import type { Settings } from "../settings/settings";
import { parseSubnet } from "../settings/azure-ids";
import { machineMirror } from "../settings/sources";
import type { MachinePlan } from "../settings/topology";
import {
  type ExistingNetwork,
  type ExistingSubnet,
  keyOf,
  subnetIdOf,
  tableOf,
} from "../azure/existing-network";
import { isAllowed } from "../azure/rights";
import {
  defaultRoutes,
  isDefault,
  isRanged,
  leadAllAway,
  leadsTo,
  prefixOf,
  routesAround,
  routesTo,
} from "../azure/routes";
import {
  endsOf,
  isAllowing,
  isRange,
  mayPass,
  type SecurityRule,
  stoppedBy,
} from "../azure/security-rules";
import { addressesOf, isIn, type Span } from "../azure/spans";
import { atAddresses, hostsOf, type NeededFlow, neededFlows } from "./ways";

/** What is wrong with a network of others. */
interface Request {
  readonly is: string;
  /** What to ask its owners for. */
  readonly ask?: string;
  /** The same after what it says already. */
  readonly briefly?: string;
  /** How the settings change, instead. */
  readonly fix?: string;
  /** Where it may do all the same, what is said in place of that. */
  readonly warning?: string;
}

interface Asked {
  /** Undefined where Azure has none. */
  readonly network: ExistingNetwork | undefined;
  /** Machines that have no interface yet. */
  readonly created: readonly Pick<MachinePlan, "zone">[];
  /** Of all machines, and of a private API. */
  readonly addresses: readonly string[];
  /** Whether there are machines with Arm processors. */
  readonly hasArm: boolean;
  /** Whether a private API has its balancer. */
  readonly hasBalancer: boolean;
  /** Whether the private DNS zone of its name is linked to the network. */
  readonly isLinked: boolean;
  /** Whether there is a cluster already. */
  readonly exists: boolean;
  /** Whether the login may not ask which addresses are free. */
  readonly areAddressesUnknown?: boolean;
  /** The cluster's. */
  readonly subscriptionId: string;
}

/** Addresses that a new cluster's first subnet is to have left for internal balancers, each of which takes one. */
const forBalancers = 8;

/** Why a cluster cannot be in the subnets of others that the settings name, or have its ranges in any network. */
export interface NetworkProblems {
  /** Each with what to ask for. */
  readonly problems: readonly string[];
  /** All that is to be asked for once more, as a text for the owners of the network. */
  readonly letter: readonly string[];
  /** What may do, or may not, for machines that are made. */
  readonly warnings: readonly string[];
}

/** Nothing of the owners' is changed. */
export function networkProblems(settings: Settings, asks: Asked): NetworkProblems {
  const all =
    settings.nodeSubnets.length === 0
      ? overlaps(settings, undefined, asks)
      : requestsOf(settings, asks);
  const requests = all.filter(({ warning }) => warning === undefined);
  const warnings = [...new Set(all.flatMap(({ warning }) => warning ?? []))];
  const asked = [...new Set(requests.flatMap(({ ask }) => ask ?? []))];
  return {
    problems: requests.map(
      ({ is, ask, briefly = ask, fix }) =>
        `${is}: ${[...(briefly === undefined ? [] : [`ask for ${briefly}`]), ...(fix === undefined ? [] : [fix])].join(", or ")}`,
    ),
    letter: asked.length === 0 ? [] : [letterOf(settings, asks.network, asked)],
    warnings:
      asks.created.length === 0
        ? []
        : warnings.map((one) => {
            const same = all.filter(({ warning }) => warning === one);
            return `${same.map(({ is }) => is).join("; ")}: ${one}`;
          }),
  };
}

/** Things have their names alone in a sentence; their ids, which are long, are at the end. */
function letterOf(
  { clusterName, nodeSubnets }: Settings,
  network: ExistingNetwork | undefined,
  asked: readonly string[],
): string {
  const subnets = [...new Set(nodeSubnets)].map((id) => parseSubnet(id)!);
  const groups = new Set(
    [...(network?.subnets.values() ?? [])].flatMap(({ securityGroup }) => securityGroup ?? []),
  );
  return [
    "for the owners of the network, as one text:",
    "",
    `The machines of the Kubernetes cluster ${clusterName} are to be in the subnet${subnets.length > 1 ? "s" : ""} ${listed(subnets.map(({ subnet }) => subnet))} of the network ` +
      `${nameOf(subnets[0]!.networkId)}. Please give us`,
    ...asked.map((one, at) => `${at + 1}. ${one}`),
    "By these names we mean",
    ...[subnets[0]!.networkId, ...groups].map((id) => `- ${nameOf(id)}: ${id}`),
  ].join("\n      ");
}

const nameOf = (id: string): string => id.split("/").at(-1)!;

/** a, b and c */
const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

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

/**
 * Rules that Azure's cloud provider takes for its own, by nothing of the cluster's. It deletes those for addresses
 * that its own cluster does not know.
 *
 * @see IsManagedSecurityRule and RetainSecurityGroup in cloud-provider-azure, pkg/provider
 */
const isOfServices = ({ name, properties: { priority } }: SecurityRule): boolean =>
  name.startsWith("k8s-azure-lb") && priority >= 500 && priority <= 4096;

/**
 * What others would lose in the network. Asked before there is a cluster, whose own Services have such rules and such
 * tags too.
 */
export function networkWarnings(
  { cloudProvider, tags }: Pick<Settings, "cloudProvider" | "tags">,
  network: ExistingNetwork | undefined,
): string[] {
  if (!cloudProvider || network === undefined) return [];
  return [...foreignRules(network), ...joinedGroups(network), ...writtenTags(tags, network)];
}

const foreignRules = (network: ExistingNetwork): string[] =>
  [...network.rules].flatMap(([id, rules]) => {
    const names = rules.filter(isOfServices).map(({ name }) => name);
    if (names.length === 0) return [];
    return [
      `the security group ${nameOf(id)} has rules for Services of another cluster, or of one that is gone: ${listed(names)}. The cloud ` +
        "providers of two clusters delete each other's, so that Services of type LoadBalancer are not reached any more: ask for a " +
        "group of its own for this cluster, or, where the other one is gone, for these rules to be deleted",
    ];
  });

/** Azure asks who writes a security group for a right at all that its rules name, whoever has made these. */
const joinedGroups = (network: ExistingNetwork): string[] =>
  [...network.rules].flatMap(([id, rules]) => {
    const named = rules.flatMap(({ properties }) => [
      ...(properties.sourceApplicationSecurityGroups ?? []),
      ...(properties.destinationApplicationSecurityGroups ?? []),
    ]);
    if (named.length === 0) return [];
    return [
      `the security group ${nameOf(id)} has rules for application security groups, and Azure's cloud provider, which adds the rules of Services of type LoadBalancer to it, has no ` +
        "right to join these: ask for a role with Microsoft.Network/applicationSecurityGroups/joinNetworkSecurityRule/action, such as Network Contributor, for the cluster's identity on " +
        listed([...new Set(named.map((one) => one.id))]),
    ];
  });

/**
 * Names are compared without regard to case, and so are values.
 *
 * @see ensureSecurityGroupTagged and reconcileTags in cloud-provider-azure, pkg/provider
 */
const writtenTags = (tags: Settings["tags"], { groupTags }: ExistingNetwork): string[] =>
  [...groupTags].flatMap(([id, theirs]) => {
    const there = new Map(Object.entries(theirs).map(([name, value]) => [keyOf(name), value]));
    const written = Object.entries(tags).flatMap(([name, value]) => {
      const before = there.get(keyOf(name));
      if (before === undefined) return [`${name}=${value}`];
      return keyOf(before) === keyOf(value) ? [] : [`${name}=${value} in place of ${before}`];
    });
    if (written.length === 0) return [];
    return [
      `Azure's cloud provider will write tags of the settings on the security group ${nameOf(id)} as soon as there is a Service of type LoadBalancer, ` +
        `and nobody takes them away again: ${listed(written)}. Tell the group's owners before, or set other tags`,
    ];
  });

function requestsOf(settings: Settings, asks: Asked): Request[] {
  const { network } = asks;
  const ids = [...new Set(settings.nodeSubnets)];
  const missing = ids
    .filter((id) => !network?.subnets.has(keyOf(id)))
    .map((id) => ({
      is: `Azure has no subnet ${id}, or this login does not see it`,
      ask: `the subnet ${nameOf(id)}, and ${readerOn(parseSubnet(id)!.networkId)}`,
    }));
  const elsewhere = subscriptionOf(settings, asks.subscriptionId);
  if (network === undefined) return findings<Request>(...missing, elsewhere);
  const subnets = ids.flatMap((id) => network.subnets.get(keyOf(id)) ?? []);
  return findings<Request>(
    ...missing,
    placeOf(settings, network),
    elsewhere,
    ...unreadableOf(network, asks),
    ...rightsIn(settings, network, subnets, asks),
    ...overlaps(settings, network, asks),
    ...subnets.flatMap((subnet) => [delegationOf(subnet), roomIn(settings, subnet, asks)]),
    ...proxied(settings, subnets),
    ...waysOut(settings, subnets, network, asks),
    ...waysWithin(subnets, network, asks),
    ...groupsOf(settings, subnets, network, asks),
  );
}

const placeOf = ({ location }: Settings, network: ExistingNetwork): Request | false =>
  network.location !== location && {
    is: `the network ${nameOf(network.id)} is in ${network.location}, and machines in ${location} can be in networks of that region alone`,
    ask: `a network in ${location}, in place of ${nameOf(network.id)}`,
    fix: `take the network's region (pulumi config set location ${network.location})`,
  };

function subscriptionOf({ nodeSubnets }: Settings, subscriptionId: string): Request | false {
  const { networkId } = parseSubnet(nodeSubnets[0]!)!;
  if (keyOf(networkId).startsWith(`/subscriptions/${keyOf(subscriptionId)}/`)) return false;
  return {
    is: `the network ${networkId} is in another subscription than the cluster, ${subscriptionId}, where Azure's cloud provider looks for it`,
    fix: "name subnets of that subscription, or deploy into the network's (pulumi config set azure-native:subscriptionId ID)",
  };
}

/** What the subnets refer to may be in other groups than the network. */
const unreadableOf = (
  { id: networkId, unreadable }: ExistingNetwork,
  { areAddressesUnknown = false }: Asked,
): Request[] =>
  findings<Request>(
    ...unreadable.map((id) => ({
      is: `the login may not read ${id}, so that nobody knows whether it lets pass what a cluster needs`,
      ask: `the role Reader on ${id} for who runs Pulumi`,
    })),
    areAddressesUnknown && {
      is: `the login may not ask which addresses of ${nameOf(networkId)} are free (Microsoft.Network/virtualNetworks/checkIpAddressAvailability/read)`,
      ask: readerOn(networkId),
    },
  );

const readerOn = (id: string): string => `the role Reader on ${nameOf(id)} for who runs Pulumi`;

/** Rights for what is still to be made: an owner may give them for that time alone. */
function rightsIn(
  settings: Settings,
  { id, permissions }: ExistingNetwork,
  subnets: readonly ExistingSubnet[],
  asks: Asked,
): Request[] {
  const may = (action: string) => isAllowed(permissions, action);
  const isLinkMade = settings.apiAccess === "private" && settings.apiName === "" && !asks.isLinked;
  const name = nameOf(id);
  const roleWith = (action: string, on = name) =>
    `a role with ${action} on ${on} for who runs Pulumi, such as Network Contributor`;
  const join = "Microsoft.Network/virtualNetworks/subnets/join/action";
  const link = "Microsoft.Network/virtualNetworks/join/action";
  const closed = may(join)
    ? []
    : subnets
        .filter((one) => isEntered(settings, one, asks) && !isAllowed(one.permissions, join))
        .map((one) => one.name);
  return findings<Request>(
    closed.length > 0 && {
      is: `the login may not put machines into ${listed(closed)}`,
      ask: roleWith(join, `the subnet${closed.length > 1 ? "s" : ""} ${listed(closed)}`),
    },
    isLinkMade &&
      !may(link) && {
        is: `the login may not link the private DNS zone of the API's name to ${name}`,
        ask: roleWith(link),
        fix: asks.exists
          ? undefined
          : "keep the name in DNS of your own, by which no zone is made (pulumi config set apiName NAME)",
      },
  );
}

/**
 * A network may get another peering at any time, and a living cluster keeps its ranges. Of what lies behind a hub a
 * peering says nothing: servers of which an address is known are looked at one by one, and so are clients, since pods'
 * ranges become routes on machines.
 *
 * @param network that of others, if the settings name one
 */
function overlaps(
  settings: Settings,
  network: ExistingNetwork | undefined,
  { exists }: Asked,
): Request[] {
  const { podCidr, serviceCidr, httpProxy, mirror, apiAccessCidrs, sshAccessCidrs } = settings;
  const { id = "", ranges = [], dnsServers = [] } = network ?? {};
  const ends = [
    ...dnsServers.map((host) => ({ host, what: "a DNS server of the network" })),
    ...atAddresses([httpProxy?.https ?? "", httpProxy?.http ?? ""]).map(({ host }) => ({
      ...{ host, what: "httpProxy" },
    })),
    ...atAddresses([machineMirror(mirror)]).map(({ host }) => ({ host, what: "mirror" })),
    ...apiAccessCidrs.map((host) => ({ host, what: "apiAccessCidrs" })),
    ...sshAccessCidrs.map((host) => ({ host, what: "sshAccessCidrs" })),
  ].filter(({ host }) => isRange(host));
  return Object.entries({ podCidr, serviceCidr }).flatMap(([key, value]) => {
    const other = ranges.find((range) => overlap(range, value));
    const inside = ends.filter(({ host }) => isIn(addressesOf(host), addressesOf(value)));
    return [
      ...(other === undefined
        ? []
        : [`${other}, which the network ${nameOf(id)} has or is peered with`]),
      ...inside.map(({ host, what }) => `${host}, ${what}`),
    ].map((apart) => ({
      is: `${key} is ${value}, expected a range apart from ${apart}`,
      fix: `pulumi config set ${key} RANGE`,
      warning: exists
        ? `the cluster reaches nothing there. A living cluster keeps its own range: ${network === undefined ? "take" : "ask the owners of the network for"} another one there`
        : undefined,
    }));
  });
}

/** etcd's members and API servers find each other and kubelets by addresses. */
function proxied(settings: Settings, subnets: readonly ExistingSubnet[]): Request[] {
  const { httpProxy } = settings;
  if (httpProxy === undefined) return [];
  const direct = withoutProxy(settings)
    .filter((one) => Address4.isValid(one))
    .map(addressesOf);
  return [...new Set(subnets.flatMap(({ ranges }) => ranges))]
    .filter((range) => !direct.some((one) => isIn(addressesOf(range), one)))
    .map((range, at) => ({
      is: `the machines' addresses are in ${range}, which httpProxy.noProxy does not name, and they would ask the proxy for each other`,
      fix: toSet(`httpProxy.noProxy[${httpProxy.noProxy.length + at}]`, range),
    }));
}

const delegationOf = ({ name, delegations }: ExistingSubnet): Request | false =>
  delegations.length > 0 && {
    is: `the subnet ${name} is delegated to ${delegations.join(", ")}, and Azure puts no machines there`,
    ask: `a subnet without a delegation, in place of ${name}`,
  };

/**
 * Machines reach a public API at its address, and answer from it: both have to go by a NAT gateway. That some clients
 * get no answer may be meant. Beside a private API, any way out will do; one that a gateway announces is not to be seen here, so that ways.ts warns.
 */
function waysOut(
  { apiAccess, apiAccessCidrs, httpProxy }: Settings,
  subnets: readonly ExistingSubnet[],
  network: ExistingNetwork,
  { exists }: Asked,
): Request[] {
  if (apiAccess === "private") {
    if (httpProxy !== undefined) return [];
    return subnets.flatMap((subnet) =>
      defaultRoutes(tableOf(subnet, network))
        .filter(leadsTo("None"))
        .map((route) => ({
          is: `the route ${route.name} of the subnet ${subnet.name} drops all that goes to ${prefixOf(route)}, and machines have no way to packages and to Azure`,
          ask: `a route ${prefixOf(route)} of ${subnet.name} to a firewall, or a NAT gateway and no such route`,
        })),
    );
  }
  const clients = apiAccessCidrs.filter((range) => !isPrivate(range));
  const away = subnets.flatMap((subnet) => {
    const table = tableOf(subnet, network);
    const ways = clients.map(routesTo(table));
    const isNoneLeft = ways.every((routes, at) => leadAllAway(clients[at]!, routes));
    const defaults = defaultRoutes(table);
    const toClients = ways
      .flat()
      .filter((route) => !leadsTo("Internet")(route) && !isPrivate(prefixOf(route)));
    return [...new Set([...defaults, ...toClients])].map((route) => ({
      ...{ subnet, route },
      isCertain: isNoneLeft || defaults.includes(route),
    }));
  });
  const bare = subnets.filter((subnet) => subnet.gateway === undefined);
  const names = listed(bare.map(({ name }) => name));
  return findings<Request>(
    ...away.map(({ subnet: { name }, route, isCertain }) => ({
      is:
        `the route ${route.name} of the subnet ${name} leads ${prefixOf(route)} to ${route.properties.nextHopType}, by which answers to who asks the API ` +
        "at its public address would leave another way than the questions came",
      ask: `no route ${prefixOf(route)} on ${name} but to Internet`,
      fix: exists ? undefined : "have no public API (pulumi config set apiAccess private)",
      warning: isCertain ? undefined : "clients there do not reach the API",
    })),
    bare.length > 0 && {
      is: `no NAT gateway is on ${names}, and machines there have no way to the API and to packages`,
      ask: `a NAT gateway on ${names}`,
    },
  );
}

/** What a firewall does with packets between machines is not to be seen here, so that ways.ts warns. */
function waysWithin(
  subnets: readonly ExistingSubnet[],
  network: ExistingNetwork,
  { addresses }: Asked,
): Request[] {
  return subnets.flatMap((subnet) => {
    const routes = addresses.flatMap(routesAround(tableOf(subnet, network), network.ranges));
    return [...new Set(routes.filter(leadsTo("None", "Internet")))].map((route) => ({
      is: `the route ${route.name} of the subnet ${subnet.name} leads ${prefixOf(route)}, where machines of the cluster are, to ${route.properties.nextHopType}, so that they do not reach each other`,
      ask: `a route ${prefixOf(route)} of ${subnet.name} to VnetLocal, or none`,
    }));
  });
}

/** What is still to be made in a subnet. The frontend of a private API is in the first one. */
function newIn(
  settings: Settings,
  { id }: Pick<ExistingSubnet, "id">,
  { created, hasBalancer }: Asked,
) {
  const { apiAccess, nodeSubnets } = settings;
  const isFirst = keyOf(nodeSubnets[0]!) === keyOf(id);
  return {
    isFirst,
    machines: created.filter(({ zone }) => keyOf(subnetIdOf(settings, zone)) === keyOf(id)).length,
    isApis: apiAccess === "private" && !hasBalancer && isFirst,
  };
}

function isEntered(settings: Settings, subnet: ExistingSubnet, asks: Asked): boolean {
  const { machines, isApis } = newIn(settings, subnet, asks);
  return machines > 0 || isApis;
}

/** Services that name no subnet have their frontends in the first one. */
function roomIn(settings: Settings, subnet: ExistingSubnet, asks: Asked): Request | false {
  const { id, name, free } = subnet;
  const { isFirst, machines, isApis } = newIn(settings, subnet, asks);
  if (machines === 0 && !isApis) return false;
  const isForServices = isFirst && !asks.exists && settings.cloudProvider;
  const counts = [
    [machines, "for machines"],
    [isApis ? 1 : 0, "for the API"],
    [isForServices ? forBalancers : 0, "for internal balancers"],
  ] as const;
  const needed = counts.reduce((sum, [count]) => sum + count, 0);
  const parts = counts.filter(([count]) => count > 0).map(([count, use]) => `${count} ${use}`);
  if (free === undefined) {
    return {
      is: `the login may not read how many addresses of the subnet ${name} are free (Microsoft.Network/virtualNetworks/usages/read), and this change needs ${needed}`,
      ask: readerOn(parseSubnet(id)!.networkId),
    };
  }
  return (
    free < needed && {
      is: `the subnet ${name} has ${free} free addresses, and this change needs ${listed(parts)}`,
      ask: `a subnet with ${needed} free addresses, in place of ${name}`,
    }
  );
}

/** What Azure counts among the tag VirtualNetwork too; of a default route it says that it may be. */
const routedRanges = ({ routes }: ExistingNetwork): string[] =>
  [...routes.values()]
    .flat()
    .filter((route) => isRanged(route) && !isDefault(route))
    .map(prefixOf);

/**
 * Whether a rule denies packets of single addresses alone that are in the machines' subnets and not the cluster's own. Azure's cloud
 * provider makes such rules for the frontends of internal Services (azure-deny-all-except-load-balancer-source-ranges).
 */
const isAboutNeighbours = (
  rule: SecurityRule,
  nodes: readonly string[],
  own: readonly string[],
): boolean =>
  !isAllowing(rule) &&
  endsOf(rule).some(
    (end) =>
      end.length > 0 &&
      end.every((one) => {
        if (!isRange(one) || new Address4(one).subnetMask < 32) return false;
        const address = addressesOf(one);
        return (
          nodes.some((range) => isIn(address, addressesOf(range))) &&
          !own.some((other) => isIn(address, addressesOf(other)))
        );
      }),
  );

/** Azure's cloud provider knows one security group, to which it adds the rules of Services. Each stops packets at its own subnets. */
function groupsOf(
  settings: Settings,
  subnets: readonly ExistingSubnet[],
  network: ExistingNetwork,
  { hasArm, addresses }: Asked,
): Request[] {
  const groups = new Map(
    subnets.flatMap(({ securityGroup: id }) => (id === undefined ? [] : [[keyOf(id), id]])),
  );
  const bare = subnets.filter(({ securityGroup }) => securityGroup === undefined);
  const one = `one network security group on all of ${listed(subnets.map(({ name }) => name))}`;
  const nodes = subnets.flatMap(({ ranges }) => ranges);
  const egress = [...network.egress.values()].flatMap(({ ranges }) => ranges);
  const known = [...network.ranges, ...routedRanges(network)].map(addressesOf);
  const flows = neededFlows(settings, nodes, egress, network.dnsServers);
  const own = [...addresses, ...network.dnsServers];
  return findings<Request>(
    bare.length > 0 && {
      is: `no network security group is on ${listed(bare.map(({ name }) => name))}, and nothing reaches a Standard balancer's machines without one`,
      ask: one,
    },
    groups.size > 1 && {
      is: `the subnets have ${groups.size} network security groups (${listed([...groups.values()].map(nameOf))}), and Azure's cloud provider knows one`,
      ask: one,
    },
    ...[...groups].flatMap(([key, id]) => {
      const guarded = subnets
        .filter(({ securityGroup = "" }) => keyOf(securityGroup) === key)
        .flatMap(({ ranges }) => ranges);
      return flows.flatMap((flow) =>
        stoppedFlow(
          { ...flow, [flow.direction === "Inbound" ? "to" : "from"]: guarded },
          nameOf(id),
          (network.rules.get(key) ?? []).filter((rule) => !isAboutNeighbours(rule, nodes, own)),
          known,
          flow.to.includes("Internet")
            ? `rules before it have to let machines out to ${hostsOf(settings, hasArm)}. docs/firewall.md has every host`
            : "rules before it have to let these out, by a service tag, or by VirtualNetwork where a gateway leads there",
        ),
      );
    }),
  );
}

/** Of the ends of a flow, those that are stopped, and by which rules. */
function stoppedFlow(
  needed: NeededFlow,
  group: string,
  rules: readonly SecurityRule[],
  network: readonly Span[],
  warning: string,
): Request[] {
  const { direction, protocol, port, lastPort, from, to, why } = needed;
  const stopped = from.flatMap((one) => {
    const closed = to.flatMap((other) => {
      const flow = { direction, protocol, port, lastPort, from: one, to: other };
      const rule = stoppedBy(flow, rules, network);
      if (rule === undefined) return [];
      return [{ one, other, rule, isOpen: mayPass(flow, rule, rules, network) }];
    });
    if (!needed.isOneEnough) return closed;
    if (closed.length < to.length) return [];
    const open = closed.filter(({ isOpen }) => isOpen);
    return open.length > 0 ? open : closed;
  });
  const names = new Set(
    stopped.map(({ rule }) => `${rule.name} (priority ${rule.properties.priority})`),
  );
  const [sources, targets] = [
    [...new Set(stopped.map(({ one }) => one))],
    [...new Set(stopped.map(({ other }) => other))],
  ];
  if (names.size === 0) return [];
  const ports = lastPort === undefined ? port : `${port}-${lastPort}`;
  const packets = `${direction.toLowerCase()} ${protocol.toUpperCase()} ${ports} from ${listed(sources)} to ${listed(targets)}`;
  return [
    {
      is: `the rule ${listed([...names])} of ${group} stops ${packets}, by which ${why}`,
      ask: `a rule in ${group} before ${listed([...names])} that allows ${packets} (${why})`,
      briefly: `a rule before it that allows them`,
      warning: needed.isOptional || stopped.every(({ isOpen }) => isOpen) ? warning : undefined,
    },
  ];
}
