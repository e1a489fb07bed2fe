import type { HttpProxy, Settings } from "./settings";

export type ProxySettings = Pick<
  Settings,
  "httpProxy" | "mirror" | "networkCidr" | "podCidr" | "serviceCidr"
>;

export interface Variable {
  readonly name: string;
  readonly value: string;
}

/**
 * What is reached without the proxy: the machine itself, Azure's metadata service and its agent's
 * server, the network, pods and Services, and the mirror. curl and Python read no ranges in it; what
 * they ask of a machine by its address, they ask with no proxy by an option of their own. Nor do they
 * read `*.domain`, which is `.domain` to Go.
 */
export const withoutProxy = ({
  httpProxy,
  mirror,
  networkCidr,
  podCidr,
  serviceCidr,
}: ProxySettings): string[] => [
  ...["localhost", "127.0.0.1", "169.254.169.254", "168.63.129.16"],
  ...[networkCidr, podCidr, serviceCidr, ".svc", ".cluster.local"],
  ...(URL.canParse(mirror) ? [new URL(mirror).hostname] : []),
  ...(httpProxy?.noProxy ?? []).map((one) => one.replace(/^\*\./, ".")),
];

/** The addresses of the proxy, as programs know them. */
export const addressVariables = (httpProxy: HttpProxy | undefined): readonly Variable[] =>
  [
    { name: "HTTP_PROXY", value: httpProxy?.http ?? "" },
    { name: "HTTPS_PROXY", value: httpProxy?.https ?? "" },
  ].filter(({ value }) => value !== "");

/**
 * The variables by which programs know the proxy; none where there is none.
 *
 * @param apiName the API, which is in the network or has another way to it
 */
export const proxyVariables = (settings: ProxySettings, apiName: string): readonly Variable[] =>
  settings.httpProxy === undefined
    ? []
    : [
        ...addressVariables(settings.httpProxy),
        { name: "NO_PROXY", value: [...withoutProxy(settings), apiName].join(",") },
      ];

/** Whether an entry of NO_PROXY, less its port, names a host or a domain that it is in. */
export const namesHost = (entry: string, host: string): boolean =>
  entry === "*" || `.${host}`.endsWith(entry.toLowerCase().replace(/^(\*?\.)?/, "."));

/** Whether a proxy's address has a user and a password in it. */
export const hasLogin = (address: string): boolean => address.includes("@");

/** Whether machines have to log in at the proxy on the way to the internet. */
export const wantsLogin = (httpProxy: HttpProxy | undefined): boolean =>
  httpProxy !== undefined && [httpProxy.http, httpProxy.https].some(hasLogin);

/** The address as it may be shown. */
export const withoutLogin = (address: string): string => address.replace(/^(\w+:\/\/)?.*@/s, "$1");
