import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { writeWhole } from "../../../shared/files";
import { certificateRequest, newPrivateKey, selfSigned, signed, signingKey } from "../../x509";
import { blobDomain } from "../types/storage/storage-account";

/** What the REST API identifies itself with over TLS. */
export interface Certificate {
  /** For clients: the authority that they have to trust. */
  readonly authority: string;
  readonly cert: string;
  readonly key: string;
}

/** The file that clients are given, as in NODE_EXTRA_CA_CERTS or SSL_CERT_FILE. */
export const authorityFile = (folder: string): string => join(folder, "azure-ca.crt");

const keyFile = (folder: string): string => join(folder, "azure-ca.key");

const dayHours = 24;

/** A certificate of this start, from the authority in the folder, which clients keep trusting. */
export async function certificateIn(folder: string): Promise<Certificate> {
  if (!existsSync(keyFile(folder)) || !existsSync(authorityFile(folder)))
    await makeAuthority(folder);
  const authority = readFileSync(authorityFile(folder), "utf8");
  const { privateKeyPem: key } = await newPrivateKey();
  const request = await certificateRequest(
    await signingKey(key, "its key"),
    { commonName: "local Azure" },
    { dnsNames: ["localhost", `*.${blobDomain}`], ipAddresses: ["127.0.0.1"] },
  );
  const authorityKey = await signingKey(readFileSync(keyFile(folder), "utf8"), keyFile(folder));
  const { certPem: cert } = await signed(authorityKey, authority, request, {
    allowedUses: ["digital_signature", "server_auth"],
    validityPeriodHours: 365 * dayHours,
    isCaCertificate: false,
    setSubjectKeyId: false,
  });
  return { authority, cert, key };
}

async function makeAuthority(folder: string): Promise<void> {
  const { privateKeyPem } = await newPrivateKey();
  const key = await signingKey(privateKeyPem, "its key");
  const { certPem } = await selfSigned(
    key,
    { commonName: "local Azure CA" },
    {
      allowedUses: ["cert_signing"],
      validityPeriodHours: 3650 * dayHours,
      isCaCertificate: true,
      setSubjectKeyId: true,
    },
  );
  writeWhole(keyFile(folder), privateKeyPem);
  writeWhole(authorityFile(folder), certPem);
}
