import { apiPort } from "../api-server";
import { KubernetesApi, NoAnswer } from "../cluster/kubernetes-api";
import type { Settings } from "../settings/settings";
import { privateApiAddress } from "../settings/topology";

interface PrivateApiArgs {
  readonly settings: Pick<Settings, "apiAccess" | "apiName" | "apiProxy" | "networkCidr">;
  /** Of the API, whoever keeps it in DNS. */
  readonly apiName: string;
  /** From the stack's outputs, of a cluster that exists and is not being restored. */
  readonly kubeconfig: string | undefined;
}

/**
 * What there is to know, before an update begins, of an API that its network alone reaches: Pulumi needs
 * it too, and fails in the middle of an update without it.
 */
export async function privateApiWarnings(args: PrivateApiArgs): Promise<string[]> {
  const { settings, apiName, kubeconfig } = args;
  if (settings.apiAccess === "public") return [];
  const address = privateApiAddress(settings.networkCidr);
  if (kubeconfig !== undefined) {
    const silence = await silenceOf(kubeconfig);
    return silence === undefined ? [] : [`${silence}. ${waysTo(apiName, address)}`];
  }
  const record =
    settings.apiName === ""
      ? []
      : [
          `apiName is ${apiName}: before machines join, the DNS that the cluster's network and you ask must have the record ` +
            `${apiName}. A ${address}`,
        ];
  const through = settings.apiProxy === "" ? "" : ` through ${settings.apiProxy}`;
  return [
    ...record,
    `the API will answer at ${address} port ${apiPort} alone, and this update asks it${through} once the first control plane ` +
      `is there. ${waysTo(apiName, address)}`,
  ];
}

const waysTo = (apiName: string, address: string): string =>
  "Three ways lead there: run Pulumi on a machine in the cluster's network or in one that is peered with it, such as a CI runner; " +
  "connect this machine by a VPN; or name an HTTP proxy that is there (pulumi config set apiProxy http://proxy.example:3128). " +
  `Where DNS does not know ${apiName}, a line in /etc/hosts does: ${address} ${apiName}`;

/** Why the API is out of reach; undefined if anything answers there. */
async function silenceOf(kubeconfig: string): Promise<string | undefined> {
  const api = new KubernetesApi(kubeconfig);
  try {
    await api.get("/readyz");
    return undefined;
  } catch (error) {
    return error instanceof NoAnswer ? error.message : undefined;
  } finally {
    await api.close();
  }
}
