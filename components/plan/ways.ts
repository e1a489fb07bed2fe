import { Address4 } from "ip-address";

import { azureCloudAt } from "../azure/clouds";
import { groupWord, networkNames } from "../azure/resource-names";
import {
  type ExistingNetwork,
  type ExistingSubnet,
  keyOf,
  subnetIdOf,
  tableOf,
} from "../azure/existing-network";
import { defaultRoutes, leadsTo, nextHopOf, type Route, routesAround } from "../azure/routes";
import { serversWithCredentials } from "../kubeadm/registries";
import { machineMirror } from "../settings/sources";
import { withoutLogin } from "../settings/proxy";
import type { Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";
import { apiPort } from "../api-server";
import { azuresAddress, type Flow } from "../azure/security-rules";
import { portRange } from "../settings/rules/argument-types";
import { silenceOf } from "../cluster/kubernetes-api";
import { isRehearsed, proxyTo } from "../settings/shell-proxy";

/** Packets that a cluster needs between all of these ends, and by which it does what. */
export interface NeededFlow extends Pick<Flow, "direction" | "protocol" | "port" | "lastPort"> {
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly why: string;
  /** Whether it may all be inside the network, where nobody sees it here. */
  readonly isOptional?: boolean;
  /** Whether each of `from` needs one of `to` alone. */
  readonly isOneEnough?: boolean;
}

/** What machines ask each other. */
const flowsAmong = ({
  cni,
}: Pick<Settings, "cni">): readonly (readonly [Flow["protocol"], number, string])[] => [
  ["Tcp", apiPort, "machines ask the API"],
  ["Tcp", 2379, "API servers ask etcd"],
  ["Tcp", 2380, "members of etcd talk to each other"],
  ["Tcp", 10250, "the API asks kubelets"],
  // Linux's own port of VXLAN, which flannel keeps.
  ...(cni === "none" ? [] : [["Udp", 8472, "pods talk to each other, in VXLAN"] as const]),
];

/**
 * What a security group of others has to let through.
 *
 * @param nodes ranges of the machines' subnets
 * @param egress public ranges that machines come from at a public API
 * @param dnsServers those of the network; none where machines ask Azure's
 */
export function neededFlows(
  settings: Settings,
  nodes: readonly string[],
  egress: readonly string[],
  dnsServers: readonly string[],
): NeededFlow[] {
  const { apiAccess, apiAccessCidrs, sshAccessCidrs, cloudProvider } = settings;
  const { httpProxy, mirror, kubeadm } = settings;
  const nodePorts = kubeadm.apiServerExtraArgs["service-node-port-range"] ?? "";
  const [firstNodePort, lastNodePort] = portRange(nodePorts) ?? [30_000, 32_767];
  const inbound = (from: readonly string[], port: number, why: string): NeededFlow => ({
    ...{ direction: "Inbound", protocol: "Tcp", from, to: nodes, port, why },
  });
  const outbound = (
    port: number,
    why: string,
    to: readonly string[] = ["Internet"],
  ): NeededFlow => ({
    ...{ direction: "Outbound", protocol: "Tcp", from: nodes, to, port, why },
  });
  // Azure's own are not stopped by rules, but for those that name AzurePlatformDNS.
  const areTheirs = dnsServers.every((one) => Address4.isValid(one) && one !== azuresAddress);
  return [
    ...flowsAmong(settings).flatMap(([protocol, port, why]) =>
      (["Inbound", "Outbound"] as const).map((direction): NeededFlow => ({
        ...{ direction, protocol, from: nodes, to: nodes, port, why },
      })),
    ),
    inbound(["AzureLoadBalancer"], apiPort, "the API's balancer probes control planes"),
    inbound(apiAccessCidrs, apiPort, "operators reach the API"),
    inbound(
      apiAccess === "public" ? egress : [],
      apiPort,
      "machines reach the API through their egress",
    ),
    inbound(sshAccessCidrs, 22, "operators reach SSH"),
    {
      // Azure's cloud provider opens Services to their clients alone.
      ...inbound(
        cloudProvider ? ["AzureLoadBalancer"] : [],
        firstNodePort,
        "balancers probe Services",
      ),
      lastPort: lastNodePort,
    },
    ...(apiAccess === "public"
      ? [outbound(apiPort, "machines ask the API at its public address")]
      : []),
    // TCP is for answers that are too long for UDP, and clusters run without.
    {
      ...outbound(53, "machines look up names", areTheirs ? dnsServers : []),
      ...{ protocol: "Udp", isOneEnough: true },
    },
    ...atAddresses([httpProxy?.https ?? "", httpProxy?.http ?? ""]).map(({ port, host }) =>
      outbound(port, "machines ask the proxy", [host]),
    ),
    ...atAddresses([machineMirror(mirror)]).map(({ port, host }) =>
      outbound(port, "machines get packages and images from the mirror", [host]),
    ),
    ...((httpProxy?.https ?? "") === ""
      ? [
          {
            ...outbound(443, "machines get packages and images, and the cloud provider asks Azure"),
            isOptional: machineMirror(mirror) !== "",
          },
        ]
      : []),
    ...((httpProxy?.http ?? "") === "" && machineMirror(mirror) === ""
      ? [outbound(80, "machines get Ubuntu's packages")]
      : []),
  ];
}

interface Server {
  readonly host: string;
  readonly port: number;
}

/** Of servers that have a name, nobody knows the address here. */
export function atAddresses(urls: readonly string[]): Server[] {
  const servers = urls
    .filter((url) => URL.canParse(url))
    .map((url) => new URL(url))
    .filter(({ hostname }) => Address4.isValid(hostname))
    .map(({ hostname, port, protocol }): [string, Server] => {
      const given = Number(port) || (protocol === "https:" ? 443 : 80);
      return [`${hostname}:${given}`, { host: hostname, port: given }];
    });
  return [...new Map(servers).values()];
}

/** Hosts that machines fetch packages and images from; some of them redirect to storage of theirs. */
export const sourcesOf = (
  { containerRuntime, registries }: Pick<Settings, "containerRuntime" | "registries">,
  hasArm: boolean,
): string[] => [
  "pkgs.k8s.io",
  "prod-cdn.packages.k8s.io",
  "registry.k8s.io",
  "*.pkg.dev",
  "mcr.microsoft.com",
  "*.data.mcr.microsoft.com",
  "quay.io",
  "registry-1.docker.io",
  "ghcr.io",
  "Ubuntu's archive (azure.archive.ubuntu.com)",
  ...(hasArm ? ["azure.ports.ubuntu.com", "ports.ubuntu.com"] : []),
  ...(containerRuntime === "cri-dockerd"
    ? ["github.com", "release-assets.githubusercontent.com"]
    : []),
  ...(registries.length > 0 ? ["packages.aks.azure.com"] : []),
];

/**
 * What machines have to reach by routes that this program does not make.
 *
 * @param created machines that this update makes, whose first boot fails without
 * @param hasArm whether there are machines with Arm processors
 * @param network that of others, if the settings name one
 */
export function ownRoutesWarnings(
  settings: Settings,
  created: readonly Pick<MachinePlan, "zone">[],
  hasArm: boolean,
  network?: ExistingNetwork,
): string[] {
  if (created.length === 0) return [];
  if (network !== undefined) return existingRoutesWarnings(settings, created, hasArm, network);
  if (settings.egress !== "none") return [];
  const { routeTable } = networkNames(settings.clusterName);
  return [
    `egress is none, and this update makes machines: ${soon}, routes in ${routeTable} or of a gateway must ` +
      `lead them to ${hostsOf(settings, hasArm)}; az network route-table route create -g ${groupWord(settings)} --route-table-name ` +
      `${routeTable} -n default --address-prefix 0.0.0.0/0 --next-hop-type VirtualAppliance --next-hop-ip-address FIREWALL`,
  ];
}

function existingRoutesWarnings(
  settings: Settings,
  created: readonly Pick<MachinePlan, "zone">[],
  hasArm: boolean,
  network: ExistingNetwork,
): string[] {
  const ids = new Set(created.map(({ zone }) => keyOf(subnetIdOf(settings, zone))));
  const bySentence = new Map<string, string[]>();
  for (const id of ids) {
    const subnet = network.subnets.get(id);
    if (subnet === undefined) continue;
    for (const sentence of [
      wayOut(settings, hasArm, subnet, network),
      wayWithin(settings, subnet, network),
    ]) {
      if (sentence === undefined) continue;
      bySentence.set(sentence, [...(bySentence.get(sentence) ?? []), subnet.name]);
    }
  }
  return [...bySentence].map(([sentence, names]) => `machines in ${names.join(", ")} ${sentence}`);
}

const named = (routes: readonly Route[]): string =>
  routes.map((route) => `the route ${route.name} to ${nextHopOf(route)}`).join(" and ");

/** etcd, kubelets and pods are asked by routes of the network's own range too, also within a subnet. */
function wayWithin(
  settings: Settings,
  subnet: ExistingSubnet,
  network: ExistingNetwork,
): string | undefined {
  const around = routesAround(tableOf(subnet, network), network.ranges);
  const ranges = [...network.subnets.values()].flatMap((one) => one.ranges);
  const led = ranges.map((range) => ({
    range,
    by: around(range).filter((route) => !leadsTo("None", "Internet")(route)),
  }));
  const routes = [...new Set(led.flatMap(({ by }) => by))];
  if (routes.length === 0) return undefined;
  const flows = flowsAmong(settings).map(([protocol, port]) => `${protocol.toUpperCase()} ${port}`);
  const targets = led.filter(({ by }) => by.length > 0).map(({ range }) => range);
  return (
    `reach machines in ${targets.join(", ")} by ${named(routes)}: from their first boot on, that has to let ${flows.join(", ")} pass, and ` +
    "answers the same way, at the pace of etcd and pods. Routes of these ranges to VnetLocal keep them in the network"
  );
}

/** Beside a public API, network-requests.ts wants a NAT gateway. */
function wayOut(
  settings: Settings,
  hasArm: boolean,
  subnet: ExistingSubnet,
  network: ExistingNetwork,
): string | undefined {
  if (settings.apiAccess === "public") return undefined;
  const routes = defaultRoutes(tableOf(subnet, network));
  if (routes.length > 0) {
    return (
      `leave by ${named(routes)}: ${soon}, that has to let them out to ${hostsOf(settings, hasArm)}. ` +
      "docs/firewall.md has every host"
    );
  }
  if (subnet.gateway !== undefined) return undefined;
  return (
    `have no NAT gateway and no route of 0.0.0.0/0 in a route table: ${soon}, a route that a gateway announces must lead them to ${hostsOf(settings, hasArm)}. ` +
    "If there is none, ask for a NAT gateway, or for a route to a firewall"
  );
}

const soon = "within 20 minutes of their first boot";

/** What machines have to reach outside of their network. */
export function hostsOf(settings: Settings, hasArm: boolean): string {
  const { httpProxy, mirror, registries, resourceManagerEndpoint } = settings;
  const { endpoint, login } = azureCloudAt(resourceManagerEndpoint);
  const hosts =
    httpProxy === undefined
      ? [
          ...[new URL(endpoint).host, login],
          ...(machineMirror(mirror) === "" ? sourcesOf(settings, hasArm) : [new URL(mirror).host]),
          ...(registries.length > 0 ? ["the servers of registries"] : []),
          ...serversWithCredentials(settings).map((server) =>
            server === "docker.io" ? "registry-1.docker.io" : server,
          ),
        ]
      : [httpProxy.http, httpProxy.https].map(withoutLogin).filter(Boolean);
  return [...new Set(hosts)].join(", ");
}

interface PrivateApiArgs {
  readonly settings: Pick<Settings, "apiName" | "apiProxy">;
  /** Of the API, whoever keeps it in DNS. */
  readonly apiName: string;
  /** Undefined where the API is public. */
  readonly address: string | undefined;
  /** That of others, if the settings name one. */
  readonly network?: Pick<ExistingNetwork, "id" | "dnsServers">;
  /** From the stack's outputs, of a cluster that exists and is not being restored. */
  readonly kubeconfig: string | undefined;
}

/**
 * What there is to know, before an update begins, of an API that its network alone reaches: Pulumi needs
 * it too, and fails in the middle of an update without it.
 */
export async function privateApiWarnings(args: PrivateApiArgs): Promise<string[]> {
  const { settings, apiName, address, network, kubeconfig } = args;
  if (address === undefined) return [];
  if (kubeconfig !== undefined) {
    const silence = await silenceOf(kubeconfig);
    if (silence === undefined) return [];
    const byShell = settings.apiProxy === "" ? shellProxyWarnings(apiName) : [];
    return [...byShell, `${silence}. ${waysTo(apiName, address)}`];
  }
  const named =
    settings.apiName === ""
      ? ownDnsWarnings(apiName, network)
      : [
          `apiName is ${apiName}: before machines join, the DNS that the cluster's network and you ask must have the record ` +
            `${apiName}. A ${address}`,
        ];
  const through = settings.apiProxy === "" ? "" : ` through ${settings.apiProxy}`;
  return [
    ...named,
    ...(settings.apiProxy === "" ? shellProxyWarnings(apiName) : []),
    `the API will answer at ${address} port ${apiPort} alone, and this update asks it${through} once the first control plane ` +
      `is there. ${waysTo(apiName, address)}`,
  ];
}

/** The private DNS zone is known to Azure's DNS alone, and there to the network that it is linked to. */
function ownDnsWarnings(apiName: string, network: PrivateApiArgs["network"]): string[] {
  const { id, dnsServers = [] } = network ?? {};
  const own = dnsServers.filter((server) => server !== azuresAddress);
  if (own.length === 0) return [];
  const [, ...zone] = apiName.split(".");
  return [
    `the network ${id} has DNS servers of its own (${own.join(", ")}), which have to know ${apiName} before machines join: have them forward ` +
      `${zone.join(".")} to ${azuresAddress} from a network that this zone is linked to, or keep the name in DNS of your own (pulumi config set apiName NAME)`,
  ];
}

/** A proxy on the way to the internet seldom leads back to what is private. */
function shellProxyWarnings(apiName: string): string[] {
  const proxy = isRehearsed() ? undefined : proxyTo(`https://${apiName}:${apiPort}`);
  if (proxy === undefined) return [];
  return [
    `this update asks the private API by HTTPS_PROXY of this shell, ${withoutLogin(proxy)}, since NO_PROXY does not name ${apiName}: if that proxy does not ` +
      "lead there, and this machine's network does, add the name to NO_PROXY, and to no_proxy where that is set",
  ];
}

const waysTo = (apiName: string, address: string): string =>
  "Three ways lead there: run Pulumi on a machine in the cluster's network or in one that is peered with it, such as a CI runner; " +
  "connect this machine by a VPN; or name an HTTP proxy that is there (pulumi config set apiProxy http://proxy.example:3128). " +
  `Where DNS does not know ${apiName}, a line in /etc/hosts does: ${address} ${apiName}`;
