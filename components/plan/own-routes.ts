import { groupName, networkNames } from "../azure/resource-names";
import type { Settings } from "../settings/settings";

/** Hosts that machines fetch packages and images from; some of them redirect to storage of theirs. */
export const sources = [
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
];

/**
 * What machines have to reach by routes that this program does not make.
 *
 * @param created whether this update makes a machine, whose first boot fails without
 */
export function ownRoutesWarnings(settings: Settings, created: boolean): string[] {
  const { clusterName, egress, httpProxy, mirror, resourceManagerEndpoint } = settings;
  if (egress !== "none" || !created) return [];
  const { routeTable } = networkNames(clusterName);
  const azure = [new URL(resourceManagerEndpoint).host, "login.microsoftonline.com"];
  const packages = URL.canParse(mirror) ? [new URL(mirror).host] : sources;
  const behind =
    httpProxy === undefined
      ? [...azure, ...packages]
      : [...new Set([httpProxy.http, httpProxy.https])].filter(Boolean);
  return [
    `egress is none, and this update makes machines: within 20 minutes of their first boot, routes in ${routeTable} or of a gateway must ` +
      `lead them to ${behind.join(", ")}; az network route-table route create -g ${groupName(settings)} --route-table-name ` +
      `${routeTable} -n default --address-prefix 0.0.0.0/0 --next-hop-type VirtualAppliance --next-hop-ip-address FIREWALL`,
  ];
}
