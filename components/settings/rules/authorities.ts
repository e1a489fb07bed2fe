import { X509Certificate } from "node:crypto";

import { Problem, toRemove } from "../problem";

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** What is wrong with the certificates of CAs. Anything else, such as a key, has no business on machines. */
export function authorityProblem(key: string, ca: string): Problem | false {
  const all = ca.match(certificate) ?? [];
  const isAll = all.length > 0 && ca.replace(certificate, "").trim() === "";
  return (
    !(isAll && all.every(isReadable)) && {
      key,
      is: isAll ? "has a certificate that cannot be read" : `is ${ca.length} characters`,
      expected: "certificates as PEM, and nothing else",
      fix: toRemove(key),
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
