import { Address4 } from "ip-address";

import { apiPort } from "../api-server";
import { azuresAddress, type Flow } from "../azure/security-rules";
import { machineMirror } from "../settings/sources";
import { portRange } from "../settings/rules/argument-types";
import type { Settings } from "../settings/settings";

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
export const flowsAmong = ({
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

/** Not stopped by rules, but for those that name AzurePlatformDNS. */

interface Server {
  readonly host: string;
  readonly port: number;
}

/** Of servers that have a name, nobody knows the address here. */
function atAddresses(urls: readonly string[]): Server[] {
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
