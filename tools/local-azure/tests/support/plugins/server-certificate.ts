import "reflect-metadata";

import { webcrypto } from "node:crypto";

import * as x509 from "@peculiar/x509";

/** A key and a certificate for a TLS server or client of a test; the certificate is its own authority. */
export async function serverCertificate(
  dnsName: string,
  commonName = "api",
  validHours = 1,
): Promise<{ readonly key: string; readonly cert: string }> {
  const crypto = webcrypto as Crypto;
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const { digitalSignature, keyCertSign } = x509.KeyUsageFlags;
  const { serverAuth, clientAuth } = x509.ExtendedKeyUsage;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      name: `CN=${commonName}`,
      keys,
      signingAlgorithm: algorithm,
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(Date.now() + validHours * 3_600_000),
      extensions: [
        new x509.KeyUsagesExtension(digitalSignature | keyCertSign, true),
        new x509.ExtendedKeyUsageExtension([serverAuth, clientAuth]),
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.SubjectAlternativeNameExtension([{ type: "dns", value: dnsName }]),
      ],
    },
    crypto,
  );
  const pkcs8 = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
  return {
    key: x509.PemConverter.encode(pkcs8, "PRIVATE KEY"),
    cert: certificate.toString("pem"),
  };
}
