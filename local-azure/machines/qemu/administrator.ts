import "reflect-metadata";

import { createPrivateKey, webcrypto } from "node:crypto";

import * as x509 from "@peculiar/x509";

import type { Payload } from "../../../components/machine/bootstrap/bootstrap";
import type { ApiUser } from "../simulated/api";

const elliptic = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const rsa = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
const lifetimeMs = 365 * 24 * 3_600_000;

/** What the local Azure needs to simulate the cloud provider in a cluster. */
export interface Administrator {
  readonly apiName: string;
  readonly ca: string;
  readonly user: ApiUser;
}

const contentOf = ({ files }: Payload, path: string): string | undefined =>
  files.find((file) => file.path === path)?.content;

/**
 * A certificate of the cloud provider's part, signed by the CA that a control plane is handed.
 * Undefined for a worker, which has none.
 */
export async function administratorOf(payload: Payload): Promise<Administrator | undefined> {
  const ca = contentOf(payload, "/etc/kubernetes/pki/ca.crt");
  const caKey = contentOf(payload, "/etc/kubernetes/pki/ca.key");
  if (ca === undefined || caKey === undefined) return undefined;
  const authority = new x509.X509Certificate(ca);
  const isRsa = authority.publicKey.algorithm.name.startsWith("RSA");
  const signingAlgorithm = isRsa ? rsa : elliptic;
  const signingKey = await webcrypto.subtle.importKey(
    "pkcs8",
    pkcs8(caKey),
    signingAlgorithm,
    false,
    ["sign"],
  );
  const keys = await webcrypto.subtle.generateKey(elliptic, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [{ O: ["system:masters"] }, { CN: ["local-azure:cloud-provider"] }],
    issuer: authority.subject,
    notBefore: new Date(Date.now() - 3_600_000),
    notAfter: new Date(Date.now() + lifetimeMs),
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm,
    extensions: [
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]),
    ],
  });
  const key = x509.PemConverter.encode(
    await webcrypto.subtle.exportKey("pkcs8", keys.privateKey),
    "PRIVATE KEY",
  );
  return { apiName: payload.apiName, ca, user: { cert: certificate.toString("pem"), key } };
}

/** Keys come in the older forms of RSA and EC too, which WebCrypto does not read. */
function pkcs8(pem: string): Buffer {
  return createPrivateKey(pem).export({ type: "pkcs8", format: "der" });
}
