import type { EnvHttpProxyAgent } from "undici";

import type { Problem } from "./problem";
import { namesHost, withoutLogin } from "./proxy";

/** Lower case goes first, as in curl. */
const variable = (name: string): string | undefined =>
  process.env[name.toLowerCase()] ?? process.env[name];

/** Whether HTTPS_PROXY is that of a rehearsal. */
export const isRehearsed = (): boolean => process.env["ZONED_OUTER_PROXY"] !== undefined;

/**
 * The proxy that this shell has on the way to the internet. HTTPS_PROXY of a rehearsal leads to the
 * APIs of its clusters alone, so that the user's own is in a variable of its own.
 */
export const outerProxy = (): string =>
  process.env["ZONED_OUTER_PROXY"] ?? variable("HTTPS_PROXY") ?? "";

/** What is reached without a proxy: what NO_PROXY names, and this host. */
function directHosts(): string {
  const given = variable("NO_PROXY") ?? "";
  return given.trim() === "*" ? "*" : `${given},127.0.0.1,localhost,[::1]`;
}

/** The proxy by which this shell goes to a server of https, such as an API; none to what is reached directly. */
export function proxyTo(server: string): string | undefined {
  const { hostname, port } = new URL(server);
  const given = port || "443";
  const isDirect = directHosts()
    .split(/[\s,]+/)
    .filter(Boolean)
    .some((one) => {
      const [, name = one, onPort = given] = /^(.+?)(?::(\d+))?$/.exec(one) ?? [];
      return namesHost(name, hostname) && onPort === given;
    });
  return isDirect ? undefined : variable("HTTPS_PROXY") || undefined;
}

let dispatcher: EnvHttpProxyAgent | undefined;

function throughProxy(): object {
  const undici = require("undici") as typeof import("undici");
  dispatcher ??= new undici.EnvHttpProxyAgent({ httpsProxy: outerProxy(), noProxy: directHosts() });
  return { dispatcher };
}

/**
 * Node's own, which knows no proxy unless it is started with NODE_USE_ENV_PROXY. Without HTTPS_PROXY, undici
 * would take HTTP_PROXY for https too, as no other program does: it may be apt's cache.
 */
export const fetch: typeof globalThis.fetch = (input, init) =>
  outerProxy() === "" && /^https:/i.test(input as string)
    ? globalThis.fetch(input, init)
    : globalThis.fetch(input, { ...init, ...throughProxy() });

/** Proxies of the shell that are no address; Node would only say that a URL is invalid. */
export const shellProxyProblems = (): Problem[] =>
  ["HTTPS_PROXY", "HTTP_PROXY"].flatMap((key) => {
    const value = variable(key) ?? "";
    if (value === "" || (/^https?:\/\//i.test(value) && URL.canParse(value))) return [];
    const shown = withoutLogin(value);
    const better = /^[\w.-]+(:\d+)?\/?$/.test(shown) ? shown : "proxy.example:3128";
    return [
      {
        key,
        is: `of this shell is ${shown}`,
        expected: "the address of an HTTP proxy with its scheme, as Node takes no other",
        fix: `export ${key}=http://${better} ${key.toLowerCase()}=http://${better}`,
      },
    ];
  });
