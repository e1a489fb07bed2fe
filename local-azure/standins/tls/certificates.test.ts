import { createPrivateKey, X509Certificate } from "node:crypto";
import { certificateRequest, selfSigned, signed, Terms } from "./certificates";
import { privateKey, signingKey } from "./keys";

const authorityTerms = {
  allowedUses: ["cert_signing", "crl_signing", "digital_signature"],
  validityPeriodHours: 24 * 365 * 100,
  isCaCertificate: true,
  maxPathLength: -1,
  setSubjectKeyId: false,
  setAuthorityKeyId: false,
};
const clientTerms: Terms = {
  allowedUses: ["client_auth", "digital_signature"],
  validityPeriodHours: 24,
  isCaCertificate: false,
  maxPathLength: -1,
  setSubjectKeyId: false,
};

const keyArgs = (algorithm: string, ecdsaCurve = "P256") => ({
  algorithm,
  ecdsaCurve,
  rsaBits: 2048,
});

async function authority(args = keyArgs("ECDSA"), terms: Partial<typeof authorityTerms> = {}) {
  const { privateKeyPem } = (await privateKey(args)).outputs;
  const key = await signingKey(privateKeyPem, "privateKeyPem");
  const issued = await selfSigned(
    key,
    { commonName: "kubernetes" },
    {},
    { ...authorityTerms, ...terms },
  );
  return { key, ...issued, certificate: new X509Certificate(issued.certPem) };
}

async function request(names = {}, organization = "kubeadm:cluster-admins") {
  const { privateKeyPem } = (await privateKey(keyArgs("ECDSA"))).outputs;
  const key = await signingKey(privateKeyPem, "privateKeyPem");
  return {
    privateKeyPem,
    pem: await certificateRequest(key, { commonName: "admin", organization }, names),
  };
}

it.each([
  { args: keyArgs("RSA"), header: "-----BEGIN RSA PRIVATE KEY-----" },
  { args: keyArgs("ECDSA"), header: "-----BEGIN EC PRIVATE KEY-----" },
  { args: keyArgs("ED25519"), header: "-----BEGIN PRIVATE KEY-----" },
])("gives a key of $args.algorithm in the format that Go reads", async ({ args, header }) => {
  const { outputs } = await privateKey(args);

  expect(outputs.privateKeyPem.split("\n")[0]).toBe(header);
  const same = (pem: string) => createPrivateKey(pem).export({ type: "pkcs8", format: "pem" });
  expect(same(outputs.privateKeyPem)).toBe(outputs.privateKeyPemPkcs8);
});

it.each([
  keyArgs("RSA"),
  keyArgs("ECDSA"),
  keyArgs("ECDSA", "P384"),
  keyArgs("ECDSA", "P521"),
  keyArgs("ED25519"),
])(
  "lets an authority of $algorithm $ecdsaCurve sign what its certificate verifies",
  async (args) => {
    const { key, certPem, certificate } = await authority(args);
    const { pem, privateKeyPem } = await request();

    const client = new X509Certificate((await signed(key, certPem, pem, clientTerms)).certPem);

    expect(client.checkIssued(certificate)).toBe(true);
    expect(client.verify(certificate.publicKey)).toBe(true);
    expect(client.checkPrivateKey(createPrivateKey(privateKeyPem))).toBe(true);
    expect(client.subject).toBe("O=kubeadm:cluster-admins\nCN=admin");
    expect(client.ca).toBe(false);
    expect(client.keyUsage).toEqual(["1.3.6.1.5.5.7.3.2"]);
  },
);

it("makes an authority that outlives the year 2050", async () => {
  const { certificate, end } = await authority();

  expect(certificate.ca).toBe(true);
  expect(Date.parse(certificate.validTo)).toBe(end.getTime());
  expect(end.getFullYear()).toBeGreaterThan(2100);
});

it("copies the names of a request into the certificate", async () => {
  const { key, certPem } = await authority();
  const { pem } = await request({ dnsNames: ["api.example.com"], ipAddresses: ["10.0.0.1"] });

  const client = new X509Certificate((await signed(key, certPem, pem, clientTerms)).certPem);

  expect(client.subjectAltName).toBe("DNS:api.example.com, IP Address:10.0.0.1");
});

it("keeps quotes and commas of a name as they are", async () => {
  const { key, certPem } = await authority();
  const { pem } = await request({}, 'One, "two" & drei ü');

  const { certPem: clientPem } = await signed(key, certPem, pem, clientTerms);

  const { O: organization } = new X509Certificate(clientPem).toLegacyObject().subject;
  expect(organization).toBe('One, "two" & drei ü');
});

it("refuses to sign with a key that is not the authority's", async () => {
  const { certPem } = await authority();
  const { key: another } = await authority();
  const { pem } = await request();

  await expect(signed(another, certPem, pem, clientTerms)).rejects.toThrow(
    "caPrivateKeyPem is not the key of the certificate in caCertPem",
  );
});

it("does not quote what is given for a key and is none", async () => {
  await expect(signingKey("almost a secret", "privateKeyPem")).rejects.toThrow(
    /^privateKeyPem is not a private key in PEM: give privateKeyPem of a tls.PrivateKey$/,
  );
});
