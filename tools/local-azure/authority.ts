import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { writeWhole } from "../shared/files";
import type { Names, Subject } from "./x509";

/** What signs takes long to load, and most that is served needs no certificate. */
const x509 = () => require("./x509") as typeof import("./x509");

const dayHours = 24;

/** A certificate authority that clients keep trusting, since it stays in a folder. */
export interface Authority {
  readonly certificate: string;
  /** A certificate for a server of these names, and its key. */
  issue(subject: Subject, names: Names): Promise<{ readonly cert: string; readonly key: string }>;
}

/**
 * The authority whose certificate is in this file of a folder, made when it is not there. Its key lies beside
 * it.
 */
export async function authorityIn(
  folder: string,
  file: `${string}.crt`,
  subject: Subject,
): Promise<Authority> {
  const { certificateRequest, newPrivateKey, selfSigned, signed, signingKey } = x509();
  const certificateFile = join(folder, file);
  const keyFile = certificateFile.replace(/\.crt$/, ".key");
  if (!existsSync(keyFile) || !existsSync(certificateFile)) {
    const { privateKeyPem } = await newPrivateKey();
    const { certPem } = await selfSigned(await signingKey(privateKeyPem, "its key"), subject, {
      allowedUses: ["cert_signing"],
      validityPeriodHours: 3650 * dayHours,
      isCaCertificate: true,
      setSubjectKeyId: true,
    });
    writeWhole(keyFile, privateKeyPem);
    writeWhole(certificateFile, certPem);
  }
  const certificate = readFileSync(certificateFile, "utf8");
  const signer = await signingKey(readFileSync(keyFile, "utf8"), keyFile);
  return {
    certificate,
    async issue(server, names) {
      const { privateKeyPem: key } = await newPrivateKey();
      const request = await certificateRequest(await signingKey(key, "its key"), server, names);
      const { certPem: cert } = await signed(signer, certificate, request, {
        allowedUses: ["digital_signature", "server_auth"],
        validityPeriodHours: 365 * dayHours,
        isCaCertificate: false,
        setSubjectKeyId: false,
      });
      return { cert, key };
    },
  };
}
