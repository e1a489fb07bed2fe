import { apiPort } from "../api-server";
import type { Flow } from "../azure/security-rules";
import type { Settings } from "../settings/settings";

/** Packets that a cluster needs between all of these ends, and by which it does what. */
export interface NeededFlow extends Pick<Flow, "direction" | "protocol" | "port"> {
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly why: string;
}

/**
 * What a security group of others has to let through.
 *
 * @param nodes ranges of the machines' subnets
 * @param egress public ranges that machines come from at a public API
 */
export function neededFlows(
  { apiAccess, apiAccessCidrs, sshAccessCidrs, cni, httpProxy }: Settings,
  nodes: readonly string[],
  egress: readonly string[],
): NeededFlow[] {
  const inbound = (from: readonly string[], port: number, why: string): NeededFlow => ({
    ...{ direction: "Inbound", protocol: "Tcp", from, to: nodes, port, why },
  });
  const among: readonly (readonly [Flow["protocol"], number, string])[] = [
    ["Tcp", apiPort, "machines ask the API"],
    ["Tcp", 2379, "API servers ask etcd"],
    ["Tcp", 2380, "members of etcd talk to each other"],
    ["Tcp", 10250, "the API asks kubelets"],
    // Linux's own port of VXLAN, which flannel keeps.
    ...(cni === "none" ? [] : [["Udp", 8472, "pods talk to each other, in VXLAN"] as const]),
  ];
  const out: NeededFlow = {
    ...{ direction: "Outbound", protocol: "Tcp", from: nodes, to: ["Internet"], port: 443 },
    why: "machines get packages and images, and the cloud provider asks Azure",
  };
  return [
    ...among.flatMap(([protocol, port, why]) =>
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
    // A proxy is at an address that is nobody's to guess here.
    ...(httpProxy === undefined ? [out] : []),
  ];
}
