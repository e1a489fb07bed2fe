import { X509Certificate } from "node:crypto";

import { Problem, findings, toRemove, toSet, toSetSecret, wants } from "../problem";
import { hasLogin } from "../proxy";
import { HttpProxy, Settings } from "../settings";

const better = "http://proxy.example:3128";

/** What is wrong with the proxy on the way to the internet. */
export function httpProxyProblems({ httpProxy }: Settings): Problem[] {
  if (httpProxy === undefined) return [];
  const { http, https, noProxy, ca } = httpProxy;
  const addresses = Object.entries({ http, https });
  return findings(
    http === "" &&
      https === "" &&
      wants("httpProxy.https", undefined, "a proxy, beside what goes without it", better),
    ...addresses.map(([name, value]) => value !== "" && addressProblem(`httpProxy.${name}`, value)),
    ...noProxy.map(
      (value, index) =>
        !/^[\w.:*/-]+$/.test(value) &&
        wants(
          `httpProxy.noProxy[${index}]`,
          hasLogin(value) ? "a name with an @" : value,
          "a name, a domain such as .example.com, an address or a range",
          ".example.com",
        ),
    ),
    ca !== "" && authorityProblem("httpProxy.ca", ca),
  );
}

/** Whose password is in the stack's file for all to read. The password itself appears in no message. */
export const readablePasswordProblems = ({ http, https }: HttpProxy): Problem[] =>
  Object.entries({ http, https })
    .filter(([, value]) => hasLogin(value))
    .map(([name]) => ({
      key: `httpProxy.${name}`,
      is: "has a password that is readable in the stack's file",
      expected:
        "an encrypted value, and another password, since this one may be in the file's history",
      fix: toSetSecret(`httpProxy.${name}`),
    }));

// In files of apt, systemd and shells: nothing that one of them would read something into.
const word = "(?:[\\w.~-]|%[0-9A-Fa-f]{2})+";
const address = new RegExp(`^http://(?:${word}:${word}@)?[\\w.-]+:\\d+$`);

/** urllib sends CONNECT in clear, whatever the address begins with. */
const noTls = ", since Python, by which machines download, speaks no TLS to a proxy";

const onItself = /^http:\/\/(?:.*@)?(localhost|127(?:\.\d+){3}):/i;

function addressProblem(key: string, value: string): Problem | false {
  if (address.test(value)) {
    const host = onItself.exec(value)?.[1];
    return (
      host !== undefined && {
        key,
        is: `leads to ${host}`,
        expected: "a proxy that machines reach, since each of them is that to itself",
        fix: hasLogin(value) ? toSetSecret(key) : toSet(key, better),
      }
    );
  }
  if (!hasLogin(value)) {
    const plain = value.replace(/^https:/, "http:");
    return wants(
      key,
      value,
      `an address of http:// with its port, such as ${better}${noTls}`,
      address.test(plain) ? plain : better,
    );
  }
  return {
    key,
    is: "has an @, and is no address of http:// with a user and a password",
    expected:
      `user, password, host and port, as in http://user:password@proxy.example:3128${noTls}; letters, digits and -._~ ` +
      "of user and password as they are, all else percent-encoded, such as %40 for @",
    fix: toSetSecret(key),
  };
}

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Azure takes 64 KiB of custom data and 256 KiB of a bootstrap step, and most of each is scripts. */
const maxAuthorityCharacters = 16_000;

/** What is wrong with the certificates of CAs. Anything else, such as a key, has no business on machines. */
export function authorityProblem(key: string, ca: string): Problem | false {
  const all = ca.match(certificate) ?? [];
  const isAll = all.length > 0 && ca.replace(certificate, "").trim() === "";
  if (!isAll || !all.every(isReadable)) {
    return {
      key,
      is: isAll ? "has a certificate that cannot be read" : `is ${ca.length} characters`,
      expected: "certificates as PEM, and nothing else",
      fix: toRemove(key),
    };
  }
  return (
    ca.length > maxAuthorityCharacters && {
      key,
      is: `is ${ca.length} characters`,
      expected: `at most ${maxAuthorityCharacters}, the one CA that answers and no bundle, since Azure limits what a machine is sent`,
      fix: `pulumi config set --path ${key} "$(cat ca.pem)"`,
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
