import { azureCloudAt } from "../azure/clouds";
import type { Entra, Settings } from "./settings";

/** Who signs the tokens by which people log in, as tokens name it. */
export const issuerOf = (
  { tenant, issuer }: Entra,
  { resourceManagerEndpoint }: Pick<Settings, "resourceManagerEndpoint">,
): string => issuer || `https://${azureCloudAt(resourceManagerEndpoint).login}/${tenant}/v2.0`;

/** What the names of people and groups begin with, so that none is one of Kubernetes' own, such as `system:masters`. */
export const prefixOf = ({ tenant }: Entra): string => (tenant === "" ? "oidc:" : "entra:");

/** Whether API servers ask it for its keys by the proxy. */
export function isByProxy(
  settings: Pick<Settings, "entra" | "httpProxy" | "resourceManagerEndpoint">,
): boolean {
  const { entra, httpProxy } = settings;
  if (entra === undefined || httpProxy === undefined || httpProxy.https === "") return false;
  const address = issuerOf(entra, settings);
  if (!URL.canParse(address)) return false;
  const host = `.${new URL(address).hostname}`;
  return !httpProxy.noProxy.some(
    (one) => one === "*" || host.endsWith(one.replace(/^(\*?\.)?/, ".")),
  );
}
