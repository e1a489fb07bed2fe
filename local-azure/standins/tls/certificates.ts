// @peculiar/x509 wants it loaded before itself.
import "reflect-metadata";
import { randomBytes, webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";
import { pem, SigningKey } from "./keys";
import { alternativeNames, extendedUsages, keyUsages, nameOf, Names, Subject } from "./vocabulary";

export interface Terms {
  readonly allowedUses: readonly string[];
  readonly validityPeriodHours: number;
  readonly isCaCertificate: boolean;
  /** Below zero: no limit. */
  readonly maxPathLength: number;
  readonly setSubjectKeyId: boolean;
}

export interface Issued {
  readonly certPem: string;
  readonly serial: string;
  readonly start: Date;
  readonly end: Date;
}

interface Certificate {
  readonly terms: Terms;
  readonly subject: x509.Name;
  readonly issuer: x509.Name;
  readonly publicKey: x509.PublicKey;
  readonly authorityKeyId?: string;
  readonly names: readonly x509.Extension[];
  readonly signer: SigningKey;
}

async function issue(certificate: Certificate): Promise<Issued> {
  const { terms, publicKey, authorityKeyId } = certificate;
  const flags = terms.allowedUses.reduce((all, use) => all | (keyUsages[use] ?? 0), 0);
  const extended = terms.allowedUses.flatMap((use) => extendedUsages[use] ?? []);
  const pathLength =
    terms.isCaCertificate && terms.maxPathLength >= 0 ? terms.maxPathLength : undefined;
  const extensions = [
    ...(flags === 0 ? [] : [new x509.KeyUsagesExtension(flags, true)]),
    ...(extended.length === 0 ? [] : [new x509.ExtendedKeyUsageExtension(extended)]),
    new x509.BasicConstraintsExtension(terms.isCaCertificate, pathLength, true),
    ...(terms.isCaCertificate || terms.setSubjectKeyId
      ? [new x509.SubjectKeyIdentifierExtension(await keyId(publicKey))]
      : []),
    ...(authorityKeyId ? [new x509.AuthorityKeyIdentifierExtension(authorityKeyId)] : []),
    ...certificate.names,
  ];
  const serial = randomBytes(16);
  // The first bit would make the number negative, and a first byte of zero would be dropped.
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const start = new Date(Math.floor(Date.now() / 1000) * 1000);
  const end = new Date(start.getTime() + terms.validityPeriodHours * 3_600_000);
  const made = await x509.X509CertificateGenerator.create(
    {
      serialNumber: serial.toString("hex"),
      subject: certificate.subject,
      issuer: certificate.issuer,
      notBefore: start,
      notAfter: end,
      publicKey,
      signingKey: certificate.signer.pair.privateKey,
      signingAlgorithm: certificate.signer.signature,
      extensions,
    },
    webcrypto as Crypto,
  );
  return {
    certPem: pem("CERTIFICATE", new Uint8Array(made.rawData)),
    serial: BigInt(`0x${serial.toString("hex")}`).toString(),
    start,
    end,
  };
}

const keyId = async (key: x509.PublicKey): Promise<string> =>
  Buffer.from(await key.getKeyIdentifier(webcrypto as Crypto)).toString("hex");

const publicKeyOf = (key: SigningKey): Promise<x509.PublicKey> =>
  x509.PublicKey.create(key.pair.publicKey, webcrypto as Crypto);

/** A certificate that vouches for itself. */
export async function selfSigned(
  key: SigningKey,
  subject: Subject,
  names: Names,
  terms: Terms & { readonly setAuthorityKeyId: boolean },
): Promise<Issued> {
  const publicKey = await publicKeyOf(key);
  const name = nameOf(subject);
  return issue({
    terms,
    subject: name,
    issuer: name,
    publicKey,
    authorityKeyId: terms.setAuthorityKeyId ? await keyId(publicKey) : undefined,
    names: alternativeNames(names),
    signer: key,
  });
}

export async function certificateRequest(
  key: SigningKey,
  subject: Subject,
  names: Names,
): Promise<string> {
  const request = await x509.Pkcs10CertificateRequestGenerator.create(
    {
      name: nameOf(subject),
      keys: key.pair,
      signingAlgorithm: key.signature,
      extensions: alternativeNames(names),
    },
    webcrypto as Crypto,
  );
  return pem("CERTIFICATE REQUEST", new Uint8Array(request.rawData));
}

/** A certificate for what a request asks, signed by an authority. */
export async function signed(
  authority: SigningKey,
  authorityPem: string,
  requestPem: string,
  terms: Terms,
): Promise<Issued> {
  const request = new x509.Pkcs10CertificateRequest(requestPem);
  if (!(await request.verify(webcrypto as Crypto))) {
    throw new Error("certRequestPem is not signed by the key that it asks a certificate for");
  }
  const authorityCertificate = new x509.X509Certificate(authorityPem);
  const authorityKey = await publicKeyOf(authority);
  if (
    !Buffer.from(authorityKey.rawData).equals(Buffer.from(authorityCertificate.publicKey.rawData))
  ) {
    throw new Error("caPrivateKeyPem is not the key of the certificate in caCertPem");
  }
  return issue({
    terms,
    subject: request.subjectName,
    issuer: authorityCertificate.subjectName,
    publicKey: request.publicKey,
    authorityKeyId: authorityCertificate.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId,
    names: request.extensions.filter(({ type }) => type === "2.5.29.17"),
    signer: authority,
  });
}
