/** Where the local Azure listens on loopback. */
export interface Ports {
  /** The REST side, which the program asks by itself. */
  readonly resourceManager: number;
  readonly azureNative: number;
  readonly tls: number;
  readonly kubernetes: number;
  /** The way to the clusters' APIs, for clients that take a proxy. */
  readonly proxy: number;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A local Azure that runs, in this process or in another. */
export interface Attachment {
  readonly ports: Ports;
  /** Where the API that is known by this name listens; undefined while there is none. */
  apiAddress(apiName: string): Promise<Address | undefined>;
}

/**
 * What makes the engine dial the local Azure where it would start a plugin.
 *
 * Always the stand-ins, also where the official plugins are installed: the kubernetes plugin would
 * look the
 * API's name up, which only exists on Azure, and a stack whose certificates came from one tls
 * plugin today
 * and from another tomorrow would be a rehearsal of nothing.
 */
export const debugProviders = ({ azureNative, tls, kubernetes }: Ports): string =>
  `azure-native:${azureNative},tls:${tls},kubernetes:${kubernetes}`;

/** The address that the setting `resourceManagerEndpoint` gets. */
export const endpointOf = ({ resourceManager }: Ports): string =>
  `http://127.0.0.1:${resourceManager}`;

/** What the setting HTTPS_PROXY gets, so that the program reaches the clusters' APIs by their names. */
export const proxyOf = ({ proxy }: Ports): string => `http://127.0.0.1:${proxy}`;
