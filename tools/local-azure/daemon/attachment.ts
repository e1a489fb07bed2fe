import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";

import { outerProxy } from "../../../components/settings/shell-proxy";
import { holderOf } from "../../shared/lock";
import { isAlive, type ProcessIdentity } from "../../shared/pids";
import { account } from "../arm/resources/resource";

/** Where the local Azure listens on loopback. */
export interface Ports {
  /** The REST API, which the program calls directly. */
  readonly resourceManager: number;
  readonly azureNative: number;
  readonly tls: number;
  readonly kubernetes: number;
  /** An HTTP proxy to the clusters' APIs. */
  readonly proxy: number;
  /** The Blob service. */
  readonly blob: number;
  /** Entra. */
  readonly login: number;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A running local Azure, in this process or another. */
export interface Attachment {
  readonly ports: Ports;
  /** File of the authority that the REST API's certificate is from. */
  readonly authority: string;
  /** The address of the API with this DNS name; undefined while there is none. */
  apiAddress(apiName: string): Promise<Address | undefined>;
}

/** `daemon.json`, which a daemon writes once it answers. */
export interface DaemonRecord extends ProcessIdentity {
  readonly since: string;
  readonly binaries: string;
  readonly ports: Ports;
}

export const recordFile = (state: string): string => join(state, "daemon.json");
export const lockFile = (state: string): string => join(state, "daemon.lock");

/** The daemon that serves this state folder now, if one does. */
export function runningDaemon(state: string): DaemonRecord | undefined {
  try {
    const record = JSON.parse(readFileSync(recordFile(state), "utf8")) as DaemonRecord;
    return isAlive(record) && holderOf(lockFile(state))?.pid === record.pid ? record : undefined;
  } catch {
    return undefined;
  }
}

/** The plugins of which Pulumi's own run; the local Azure stands in for all others. */
export type OfficialPlugins = readonly string[];

/** Makes the engine connect to the local Azure's providers instead of starting plugins. */
export const debugProviders = (
  { azureNative, tls, kubernetes }: Ports,
  official: OfficialPlugins = [],
): string =>
  Object.entries({ "azure-native": azureNative, tls, kubernetes })
    .filter(([name]) => !official.includes(name))
    .map(([name, port]) => `${name}:${port}`)
    .join(",");

/** Folder of the command `az` that is logged in to the local Azure. */
const login = join(__dirname, "../login");

/** Leads Pulumi's own plugin for Azure to the local Azure, with a login of its own. */
const azureNativeSettings = ({ ports, authority }: Attachment): Record<string, string> => ({
  // Where the plugin asks for all other addresses.
  ARM_METADATA_HOSTNAME: `127.0.0.1:${ports.resourceManager}`,
  ARM_SUBSCRIPTION_ID: account.subscriptionId,
  SSL_CERT_FILE: authority,
  PATH: [login, process.env.PATH].join(delimiter),
});

/** The value of the setting `resourceManagerEndpoint`. */
export const endpointOf = ({ resourceManager }: Ports): string =>
  `http://127.0.0.1:${resourceManager}`;

/** The same for official SDKs, which send no token without TLS. */
export const secureEndpointOf = ({ resourceManager }: Ports): string =>
  `https://127.0.0.1:${resourceManager}`;

/** Where the blobs of a storage account are, for a client on this host. */
export const blobEndpointOf = ({ blob }: Ports, account: string): string =>
  `http://127.0.0.1:${blob}/${account}`;

/**
 * The value of HTTPS_PROXY, so that the program and the official kubernetes plugin reach the
 * clusters' APIs by their names.
 */
export const proxyOf = ({ proxy }: Ports): string => `http://127.0.0.1:${proxy}`;

/**
 * The proxy for API names that exist only on Azure; this host is reached without it, the internet
 * by the user's own. Both spellings are needed: grpc-js, between engine and program, reads lower
 * case only.
 */
function proxies(own: string): Record<string, string> {
  const given = `${process.env.no_proxy ?? ""},${process.env.NO_PROXY ?? ""}`.split(/[\s,]+/);
  // A user's NO_PROXY may exclude all of Azure, but the names of the APIs need the proxy.
  const kept = given.filter((name) => name !== "" && !/^\*$|azure\.com$|\binternal$/i.test(name));
  const direct = [...new Set([...kept, "127.0.0.1", "localhost", "::1"])].join(",");
  const apis = { HTTPS_PROXY: own, https_proxy: own, NO_PROXY: direct, no_proxy: direct };
  return { ...apis, ZONED_OUTER_PROXY: outerProxy() };
}

/** Environment variables that make the engine and the program use this local Azure. */
export const attachedEnvironment = (
  azure: Attachment,
  official: OfficialPlugins,
): Record<string, string> => {
  const standIns = debugProviders(azure.ports, official);
  return {
    ...(official.includes("azure-native") && azureNativeSettings(azure)),
    ...(standIns !== "" && { PULUMI_DEBUG_PROVIDERS: standIns }),
    ...proxies(proxyOf(azure.ports)),
  };
};
