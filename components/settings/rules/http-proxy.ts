import { X509Certificate } from "node:crypto";

import { Problem, toRemove, toSet, wants } from "../problem";
import { Settings } from "../settings";

const better = "http://proxy.example:3128";

/** What is wrong with the proxy on the way to the internet. */
export function httpProxyProblems({ httpProxy }: Settings): Problem[] {
  if (httpProxy === undefined) return [];
  const { http, https, noProxy, ca } = httpProxy;
  const addresses = Object.entries({ http, https });
  const problems: (Problem | false)[] = [
    http === "" &&
      https === "" &&
      wants("httpProxy.https", undefined, "a proxy, beside what goes without it", better),
    ...addresses.map(([name, value]) => value !== "" && addressProblem(`httpProxy.${name}`, value)),
    ...noProxy.map(
      (value, index) =>
        !/^[\w.:*/-]+$/.test(value) &&
        wants(
          `httpProxy.noProxy[${index}]`,
          value,
          "a name, a domain such as .example.com, an address or a range",
          ".example.com",
        ),
    ),
    ca !== "" && certificateProblem(ca),
  ];
  return problems.filter((problem) => problem !== false);
}

/** The address without the user and password that it has; undefined where it has neither. */
export function withoutCredentials(address: string): string | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  return url?.username || url?.password ? `${url.protocol}//${url.host}` : undefined;
}

function addressProblem(key: string, value: string): Problem | false {
  const open = withoutCredentials(value);
  if (open !== undefined) {
    return {
      key,
      // Not the value: it has a password in it.
      is: "has a user or a password",
      expected:
        "a proxy that knows machines by their addresses, since customData, which Azure leaves readable on every machine, needs it before any secret can be sent",
      fix: toSet(key, open),
    };
  }
  return (
    !/^https?:\/\/[\w.-]+:\d+$/.test(value) &&
    wants(key, value, `an address of http or https with its port, such as ${better}`, better)
  );
}

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Anything else, such as a key, has no business on machines. */
function certificateProblem(ca: string): Problem | false {
  const all = ca.match(certificate) ?? [];
  const isAll = all.length > 0 && ca.replace(certificate, "").trim() === "";
  return (
    !(isAll && all.every(isReadable)) && {
      key: "httpProxy.ca",
      is: isAll ? "has a certificate that cannot be read" : `is ${ca.length} characters`,
      expected: "certificates as PEM, and nothing else",
      fix: toRemove("httpProxy.ca"),
    }
  );
}

function isReadable(pem: string): boolean {
  try {
    return new X509Certificate(pem).ca;
  } catch {
    return false;
  }
}
