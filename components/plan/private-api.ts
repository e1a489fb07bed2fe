import { apiPort } from "../api-server";
import { silenceOf } from "../cluster/kubernetes-api";
import type { ExistingNetwork } from "../azure/existing-network";
import { azuresAddress } from "../azure/security-rules";
import { withoutLogin } from "../settings/proxy";
import type { Settings } from "../settings/settings";
import { isRehearsed, proxyTo } from "../settings/shell-proxy";

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
