import "reflect-metadata";

import { createHash, createPrivateKey, createPublicKey, X509Certificate } from "node:crypto";

import * as x509 from "@peculiar/x509";

import { certificateRequest, newPrivateKey, selfSigned, signed, signingKey, Terms } from "../x509";

const authorityTerms: Terms = {
  allowedUses: ["cert_signing", "crl_signing", "digital_signature"],
  validityPeriodHours: 24 * 365 * 100,
  isCaCertificate: true,
  setSubjectKeyId: false,
};
const clientTerms: Terms = {
  allowedUses: ["client_auth", "digital_signature"],
  validityPeriodHours: 24,
  isCaCertificate: false,
  setSubjectKeyId: false,
};

const newKey = async () => signingKey((await newPrivateKey()).privateKeyPem, "privateKeyPem");

async function authority() {
  const key = await newKey();
  const issued = await selfSigned(key, { commonName: "kubernetes" }, authorityTerms);
  return { key, ...issued, certificate: new X509Certificate(issued.certPem) };
}

async function request(organization = "kubeadm:cluster-admins") {
  const { privateKeyPem } = await newPrivateKey();
  const key = await signingKey(privateKeyPem, "privateKeyPem");
  return {
    privateKeyPem,
    pem: await certificateRequest(key, { commonName: "admin", organization }),
  };
}

/** Object identifiers of a certificate's extensions, with `!` behind the critical ones. */
const extensionsOf = (certPem: string): string[] =>
  new x509.X509Certificate(certPem).extensions.map(({ type, critical }) =>
    critical ? `${type}!` : type,
  );

it("gives a key in the formats that Go writes", async () => {
  const { privateKeyPem, publicKeyPem } = await newPrivateKey();

  expect(privateKeyPem).toMatch(/^-----BEGIN RSA PRIVATE KEY-----\n[^]*\n$/);
  expect(publicKeyPem).toMatch(/^-----BEGIN PUBLIC KEY-----\n[^]*\n$/);
  expect(createPublicKey(privateKeyPem).export({ type: "spki", format: "pem" })).toBe(publicKeyPem);
});

it("lets an authority sign what its certificate verifies", async () => {
  const { key, certPem, certificate } = await authority();
  const { pem, privateKeyPem } = await request();

  const client = new X509Certificate((await signed(key, certPem, pem, clientTerms)).certPem);

  expect(client.checkIssued(certificate)).toBe(true);
  expect(client.verify(certificate.publicKey)).toBe(true);
  expect(client.checkPrivateKey(createPrivateKey(privateKeyPem))).toBe(true);
  expect(client.subject).toBe("O=kubeadm:cluster-admins\nCN=admin");
  expect(client.ca).toBe(false);
  expect(client.keyUsage).toEqual(["1.3.6.1.5.5.7.3.2"]);
});

it("gives certificates the extensions of the official plugin, in its order", async () => {
  const [keyUsage, extendedKeyUsage, basicConstraints] = ["2.5.29.15!", "2.5.29.37", "2.5.29.19!"];
  const [subjectKeyId, authorityKeyId] = ["2.5.29.14", "2.5.29.35"];
  const { key, certPem, certificate, end } = await authority();
  const { pem } = await request();

  // It outlives the year 2050, from which on certificates write years otherwise.
  expect(Date.parse(certificate.validTo)).toBe(Math.floor(end.getTime() / 1000) * 1000);
  expect(end.getFullYear()).toBeGreaterThan(2100);
  expect(extensionsOf(certPem)).toEqual([keyUsage, basicConstraints, subjectKeyId]);
  expect(extensionsOf((await signed(key, certPem, pem, clientTerms)).certPem)).toEqual([
    keyUsage,
    extendedKeyUsage,
    basicConstraints,
    authorityKeyId,
  ]);
  const withSubjectKeyId = await signed(key, certPem, pem, {
    ...clientTerms,
    setSubjectKeyId: true,
  });
  expect(extensionsOf(withSubjectKeyId.certPem)).toContain(subjectKeyId);
});

it("takes names and addresses of a request over into the certificate, last", async () => {
  const { key, certPem } = await authority();
  const names = { dnsNames: ["cp-1"], ipAddresses: ["172.16.1.4"] };
  const pem = await certificateRequest(await newKey(), { commonName: "cp-1" }, names);
  const terms = { ...clientTerms, allowedUses: ["server_auth"] };

  const { certPem: serverPem } = await signed(key, certPem, pem, terms);

  const server = new X509Certificate(serverPem);
  expect(server.subjectAltName).toBe("DNS:cp-1, IP Address:172.16.1.4");
  expect(server.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
  expect(extensionsOf(serverPem).at(-1)).toBe("2.5.29.17");
});

it("identifies keys by the SHA-1 of their PKCS #1 form, and an issued certificate by its authority's", async () => {
  const { key, certPem, certificate } = await authority();
  const { pem } = await request();
  const publicKey = certificate.publicKey.export({ type: "pkcs1", format: "der" });
  const keyId = createHash("sha1").update(publicKey).digest("hex");

  const client = new x509.X509Certificate((await signed(key, certPem, pem, clientTerms)).certPem);

  const ofAuthority = new x509.X509Certificate(certPem);
  expect(ofAuthority.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId).toBe(keyId);
  expect(client.getExtension(x509.AuthorityKeyIdentifierExtension)?.keyId).toBe(keyId);
});

it("keeps quotes and commas of a name as they are", async () => {
  const { key, certPem } = await authority();
  const { pem } = await request('One, "two" & drei ü');

  const { certPem: clientPem } = await signed(key, certPem, pem, clientTerms);

  const { O: organization } = new X509Certificate(clientPem).toLegacyObject().subject;
  expect(organization).toBe('One, "two" & drei ü');
});

it("refuses an authority without a name", async () => {
  await expect(selfSigned(await newKey(), {}, authorityTerms)).rejects.toThrow(
    /^the subject of a certificate authority is empty/,
  );
});

it("refuses to sign with a key that is not the authority's", async () => {
  const { certPem } = await authority();
  const { pem } = await request();

  await expect(signed(await newKey(), certPem, pem, clientTerms)).rejects.toThrow(
    "caPrivateKeyPem is not the key of the certificate in caCertPem",
  );
});

it("does not quote a text that is not a key", async () => {
  await expect(signingKey("almost a secret", "privateKeyPem")).rejects.toThrow(
    /^privateKeyPem is not a private key in PEM: give privateKeyPem of a tls.PrivateKey$/,
  );
});
