import type { HttpProxy } from "./settings";

/** Whether a proxy's address has a user and a password in it. */
export const hasLogin = (address: string): boolean => address.includes("@");

/** Whether machines have to log in at the proxy on the way to the internet. */
export const wantsLogin = (httpProxy: HttpProxy | undefined): boolean =>
  httpProxy !== undefined && [httpProxy.http, httpProxy.https].some(hasLogin);

/** The address as it may be shown. */
export const withoutLogin = (address: string): string => address.replace(/^(\w+:\/\/)?.*@/s, "$1");
