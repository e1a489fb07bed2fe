export const certRequest = "tls:index/certRequest:CertRequest";
export const locallySignedCert = "tls:index/locallySignedCert:LocallySignedCert";

/** What the tls provider computes, as texts that name their resource; for `Recorder.start`. */
export const filledInCertificates = {
  "tls:index/privateKey:PrivateKey": ({ name }: { name: string }) => ({
    privateKeyPem: `private ${name}`,
  }),
  "tls:index/selfSignedCert:SelfSignedCert": ({ name }: { name: string }) => ({
    certPem: `cert ${name}`,
  }),
  [certRequest]: ({ name }: { name: string }) => ({ certRequestPem: `request ${name}` }),
  [locallySignedCert]: ({ name }: { name: string }) => ({
    certPem: `cert ${name}`,
    validityEndTime: `end of ${name}`,
  }),
};
