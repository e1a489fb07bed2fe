// @peculiar/x509 needs it loaded before itself.
import "reflect-metadata";

import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  KeyObject,
  randomBytes,
  webcrypto,
} from "node:crypto";
import { promisify } from "node:util";

import * as x509 from "@peculiar/x509";

const { KeyUsageFlags } = x509;
const modulusLength = 2048;
const signingAlgorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
const engine = webcrypto as Crypto;

const keyUsages: Readonly<Record<string, x509.KeyUsageFlags>> = {
  digital_signature: KeyUsageFlags.digitalSignature,
  key_encipherment: KeyUsageFlags.keyEncipherment,
  cert_signing: KeyUsageFlags.keyCertSign,
  crl_signing: KeyUsageFlags.cRLSign,
};
const extendedUsages: Readonly<Record<string, string>> = {
  client_auth: "1.3.6.1.5.5.7.3.2",
  server_auth: "1.3.6.1.5.5.7.3.1",
};

/** What `allowedUses` may name. */
export const knownUses: readonly string[] = [
  ...Object.keys(keyUsages),
  ...Object.keys(extendedUsages),
];

const subjectAlternativeName = "2.5.29.17";

export interface Subject {
  readonly organization?: string;
  readonly commonName?: string;
}

/** What a certificate is good for besides its subject. */
export interface Names {
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
}

export interface Terms {
  readonly allowedUses: readonly string[];
  readonly validityPeriodHours: number;
  readonly isCaCertificate: boolean;
  readonly setSubjectKeyId: boolean;
}

export interface Issued {
  readonly certPem: string;
  readonly serial: string;
  readonly start: Date;
  readonly end: Date;
}

/** A new RSA key of 2048 bits; `privateKeyPem` is in PKCS #1, as Go writes RSA keys. */
export async function newPrivateKey() {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength });
  return {
    privateKeyPem: privateKey.export({ type: "pkcs1", format: "pem" }).toString(),
    publicKeyPem: createPublicKey(privateKey).export({ type: "spki", format: "pem" }).toString(),
  };
}

/** The bytes between the first and the last line of a PEM. */
export const derOf = (pem: string): Buffer => Buffer.from(x509.PemConverter.decodeFirst(pem));

const pemOf = (label: string, der: ArrayBuffer): string =>
  `${x509.PemConverter.encode(der, label)}\n`;

/** A private key in one of its PEM formats, ready to sign certificates. */
export async function signingKey(
  privateKeyPem: string,
  property: string,
): Promise<webcrypto.CryptoKeyPair> {
  let key: KeyObject;
  try {
    key = createPrivateKey(privateKeyPem);
  } catch {
    // The message of OpenSSL can quote the key.
    throw new Error(
      `${property} is not a private key in PEM: give privateKeyPem of a tls.PrivateKey`,
    );
  }
  if (key.asymmetricKeyDetails?.modulusLength !== modulusLength) {
    throw new Error(
      `${property} is not an RSA key of ${modulusLength} bits, and this stand-in for the tls plugin signs ` +
        `with no other: set algorithm and rsaBits of the tls.PrivateKey`,
    );
  }
  const load = (format: "pkcs8" | "spki", der: Buffer, use: "sign" | "verify") =>
    webcrypto.subtle.importKey(format, der, signingAlgorithm, true, [use]);
  return {
    privateKey: await load("pkcs8", key.export({ type: "pkcs8", format: "der" }), "sign"),
    publicKey: await load(
      "spki",
      createPublicKey(key).export({ type: "spki", format: "der" }),
      "verify",
    ),
  };
}

/** In the order in which Go writes the parts of a name. */
const nameOf = ({ organization, commonName }: Subject): x509.Name =>
  new x509.Name([
    ...(organization ? [{ "2.5.4.10": [nameString(organization)] }] : []),
    ...(commonName ? [{ "2.5.4.3": [nameString(commonName)] }] : []),
  ]);

/** In a bare string, the library would read quotes and commas as the syntax of a name. */
const nameString = (value: string): x509.JsonAttributeObject =>
  /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(value) ? { printableString: value } : { utf8String: value };

const keyId = async (key: x509.PublicKey): Promise<string> =>
  Buffer.from(await key.getKeyIdentifier(engine)).toString("hex");

/** A certificate that is signed with its own key. */
export async function selfSigned(
  key: webcrypto.CryptoKeyPair,
  subject: Subject,
  terms: Terms,
): Promise<Issued> {
  const name = nameOf(subject);
  if (terms.isCaCertificate && name.toString() === "") {
    throw new Error(
      "the subject of a certificate authority is empty: give it a commonName or an organization",
    );
  }
  const publicKey = await x509.PublicKey.create(key.publicKey, engine);
  return issue({ terms, subject: name, issuer: name, publicKey, signer: key });
}

export async function certificateRequest(
  key: webcrypto.CryptoKeyPair,
  subject: Subject,
  { dnsNames = [], ipAddresses = [] }: Names = {},
): Promise<string> {
  const names = [
    ...dnsNames.map((value) => ({ type: "dns" as const, value })),
    ...ipAddresses.map((value) => ({ type: "ip" as const, value })),
  ];
  const request = await x509.Pkcs10CertificateRequestGenerator.create(
    {
      name: nameOf(subject),
      keys: key,
      signingAlgorithm,
      extensions: names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)],
    },
    engine,
  );
  return pemOf("CERTIFICATE REQUEST", request.rawData);
}

/** A certificate for what a request asks, signed by an authority. */
export async function signed(
  authority: webcrypto.CryptoKeyPair,
  authorityPem: string,
  requestPem: string,
  terms: Terms,
): Promise<Issued> {
  const request = new x509.Pkcs10CertificateRequest(requestPem);
  if (!(await request.verify(engine))) {
    throw new Error("certRequestPem is not signed by the key that it asks a certificate for");
  }
  const issuer = new x509.X509Certificate(authorityPem);
  const { rawData } = await x509.PublicKey.create(authority.publicKey, engine);
  if (!Buffer.from(rawData).equals(Buffer.from(issuer.publicKey.rawData))) {
    throw new Error("caPrivateKeyPem is not the key of the certificate in caCertPem");
  }
  return issue({
    terms,
    subject: request.subjectName,
    issuer: issuer.subjectName,
    publicKey: request.publicKey,
    authorityKeyId: issuer.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId,
    names: request.extensions.find(({ type }) => type === subjectAlternativeName),
    signer: authority,
  });
}

interface Certificate {
  readonly terms: Terms;
  readonly subject: x509.Name;
  readonly issuer: x509.Name;
  readonly publicKey: x509.PublicKey;
  readonly authorityKeyId?: string;
  readonly names?: x509.Extension;
  readonly signer: webcrypto.CryptoKeyPair;
}

async function issue(certificate: Certificate): Promise<Issued> {
  const { terms, subject, issuer, publicKey, authorityKeyId, names, signer } = certificate;
  const flags = terms.allowedUses.reduce((all, use) => all | (keyUsages[use] ?? 0), 0);
  const extended = terms.allowedUses.flatMap((use) => extendedUsages[use] ?? []);
  const serial = randomBytes(16);
  // The first bit would make the number negative, and a first byte of zero would be dropped.
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const start = new Date();
  const end = new Date(start.getTime() + terms.validityPeriodHours * 3_600_000);
  const made = await x509.X509CertificateGenerator.create(
    {
      serialNumber: serial.toString("hex"),
      subject,
      issuer,
      notBefore: start,
      notAfter: end,
      publicKey,
      signingKey: signer.privateKey,
      signingAlgorithm,
      extensions: [
        ...(flags === 0 ? [] : [new x509.KeyUsagesExtension(flags, true)]),
        ...(extended.length === 0 ? [] : [new x509.ExtendedKeyUsageExtension(extended)]),
        new x509.BasicConstraintsExtension(terms.isCaCertificate, undefined, true),
        ...(terms.isCaCertificate || terms.setSubjectKeyId
          ? [new x509.SubjectKeyIdentifierExtension(await keyId(publicKey))]
          : []),
        ...(authorityKeyId ? [new x509.AuthorityKeyIdentifierExtension(authorityKeyId)] : []),
        ...(names ? [names] : []),
      ],
    },
    engine,
  );
  return {
    certPem: pemOf("CERTIFICATE", made.rawData),
    serial: BigInt(`0x${serial.toString("hex")}`).toString(),
    start,
    end,
  };
}
