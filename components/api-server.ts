import { azureCloudAt } from "./azure/clouds";
import { dnsLabel } from "./azure/resource-names";
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
export function apiName(settings: Settings, subscriptionId: string): string {
  const { clusterName, location, resourceManagerEndpoint } = settings;
  if (settings.apiName !== "") return settings.apiName;
  if (settings.apiAccess === "private") {
    return `${apiRecord}.${apiZone(clusterName, subscriptionId)}`;
  }
  return `${dnsLabel(clusterName, subscriptionId)}.${location}.${azureCloudAt(resourceManagerEndpoint).domain}`;
}

/** The name of a private API in its zone. */
export const apiRecord = "api";

/** The private DNS zone of a cluster's API, below the domain that is nobody's in the internet. */
export const apiZone = (clusterName: string, subscriptionId: string): string =>
  `${dnsLabel(clusterName, subscriptionId)}.internal`;
