import { X509Certificate } from "node:crypto";

import type { Payload } from "../../../../../components/machine/payload";
import { administratorOf } from "../../../machines/qemu/administrator";
import { newPrivateKey, selfSigned, signingKey } from "../../../x509";

const payloadWith = (files: Readonly<Record<string, string>>): Payload =>
  ({
    apiName: "demo",
    files: Object.entries(files).map(([path, content]) => ({ path, content, mode: "0600" })),
  }) as unknown as Payload;

it("is an administrator by a certificate of the CA that a control plane is handed", async () => {
  const { privateKeyPem } = await newPrivateKey();
  const { certPem } = await selfSigned(
    await signingKey(privateKeyPem, "the CA's key"),
    { commonName: "kubernetes" },
    {
      allowedUses: ["cert_signing"],
      validityPeriodHours: 1,
      isCaCertificate: true,
      setSubjectKeyId: true,
    },
  );
  const files = {
    "/etc/kubernetes/pki/ca.crt": certPem,
    "/etc/kubernetes/pki/ca.key": privateKeyPem,
  };

  const { user } = (await administratorOf(payloadWith(files)))!;

  const certificate = new X509Certificate(user.cert!);
  expect(certificate.subject).toBe("O=system:masters\nCN=local-azure:cloud-provider");
  expect(certificate.keyUsage).toEqual(["1.3.6.1.5.5.7.3.2"]);
  expect(certificate.verify(new X509Certificate(certPem).publicKey)).toBe(true);
  expect(user.key).toContain("PRIVATE KEY");
});

it("is nobody by what a worker is handed", async () => {
  expect(await administratorOf(payloadWith({}))).toBeUndefined();
});
