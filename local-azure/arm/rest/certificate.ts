import "reflect-metadata";

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import * as x509 from "@peculiar/x509";

import { writeWhole } from "../../../shared/files";
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

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const day = 86_400_000;

/** A certificate of this start, from the authority in the folder, which clients keep trusting. */
export async function certificateIn(folder: string): Promise<Certificate> {
  if (!existsSync(keyFile(folder)) || !existsSync(authorityFile(folder)))
    await makeAuthority(folder);
  const authority = new x509.X509Certificate(readFileSync(authorityFile(folder), "utf8"));
  const signingKey = await crypto.subtle.importKey(
    "pkcs8",
    x509.PemConverter.decodeFirst(readFileSync(keyFile(folder), "utf8")),
    algorithm,
    false,
    ["sign"],
  );
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.create({
    subject: "CN=local Azure",
    issuer: authority.subjectName,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: algorithm,
    ...validFor(365),
    extensions: [
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([
        { type: "ip", value: "127.0.0.1" },
        { type: "dns", value: "localhost" },
        { type: "dns", value: `*.${blobDomain}` },
      ]),
      await x509.AuthorityKeyIdentifierExtension.create(authority),
    ],
  });
  return {
    authority: authority.toString("pem"),
    cert: certificate.toString("pem"),
    key: await privatePem(keys),
  };
}

async function makeAuthority(folder: string): Promise<void> {
  const keys = await newKeys();
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=local Azure CA",
    keys,
    signingAlgorithm: algorithm,
    ...validFor(3650),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  writeWhole(keyFile(folder), await privatePem(keys));
  writeWhole(authorityFile(folder), `${authority.toString("pem")}\n`);
}

const newKeys = (): Promise<CryptoKeyPair> =>
  crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]) as Promise<CryptoKeyPair>;

const privatePem = async ({ privateKey }: CryptoKeyPair): Promise<string> =>
  `${x509.PemConverter.encode(await crypto.subtle.exportKey("pkcs8", privateKey), "PRIVATE KEY")}\n`;

const validFor = (days: number) => ({
  notBefore: new Date(Date.now() - day),
  notAfter: new Date(Date.now() + days * day),
});
