import { createHash } from "node:crypto";

import { azureCloudAt } from "./azure/clouds";
import type { Settings } from "./settings/settings";

/** Port of the API, on the machines as on the balancer. */
export const apiPort = 6443;

/** Where the API answers. */
export interface ApiServer {
  readonly name: string;
  readonly port: number;
}

/** `https://name:port` */
export const serverOf = ({ name, port }: ApiServer): string => `https://${name}:${port}`;

/** The API's name, by which certificates, kubeconfigs and machines know it. */
export const apiName = (settings: Settings, subscriptionId: string): string =>
  `${dnsLabel(settings.clusterName, subscriptionId)}.${settings.location}.${azureCloudAt(settings.resourceManagerEndpoint).domain}`;

/**
 * The DNS label of the API: unique in a region, since it carries a hash of subscription and
 * cluster, and the same for ever, since certificates and kubeconfigs carry it.
 */
export function dnsLabel(clusterName: string, subscriptionId: string): string {
  // The same subscription is written in capitals by some tools.
  const owner = `${subscriptionId.toLowerCase()}/${clusterName}`;
  return `${clusterName}-${createHash("sha256").update(owner).digest("hex").slice(0, 8)}`;
}
