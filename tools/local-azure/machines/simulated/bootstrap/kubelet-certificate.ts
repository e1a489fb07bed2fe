import { X509Certificate } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";

import { certificateRequest, newPrivateKey, selfSigned, signingKey } from "../../../x509";
import { type Api, ApiError, type ApiUser } from "../api";

const certificateWithinMs = 60_000;

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** What a kubelet makes itself where its configuration names no certificate. */
export async function ownCertificate(): Promise<KeyPair> {
  const { privateKeyPem: key } = await newPrivateKey();
  const { certPem: cert } = await selfSigned(
    await signingKey(key, "its key"),
    { commonName: "kubelet" },
    {
      allowedUses: ["digital_signature", "server_auth"],
      validityPeriodHours: 365 * 24,
      isCaCertificate: false,
      setSubjectKeyId: false,
    },
  );
  return { cert, key };
}

/** Whether the first of these CAs has signed a certificate, and not one that is only still trusted. */
export const isSignedBy = (authorities: string, certificate: string | undefined): boolean =>
  certificate !== undefined &&
  new X509Certificate(certificate).verify(new X509Certificate(authorities).publicKey);

/** A kubelet's certificate, got with a bootstrap credential as a kubelet gets it. */
export async function kubeletCertificate(api: Api, node: string): Promise<ApiUser> {
  const { privateKeyPem: key } = await newPrivateKey();
  const subject = { organization: "system:nodes", commonName: `system:node:${node}` };
  const request = await certificateRequest(await signingKey(key, "its key"), subject);
  const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const { metadata } = await api.post(requests, {
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { generateName: "node-csr-" },
    spec: {
      request: Buffer.from(request).toString("base64"),
      signerName: "kubernetes.io/kube-apiserver-client-kubelet",
      usages: ["digital signature", "client auth"],
    },
  });
  for (const until = Date.now() + certificateWithinMs; Date.now() < until; await wait(200)) {
    const { status = {} } = await api.get(`${requests}/${metadata.name}`);
    const denied = status.conditions?.find(({ type }: { type: string }) => type !== "Approved");
    if (denied) {
      throw new ApiError(
        403,
        `certificate request ${metadata.name}: ${denied.type}, ${denied.message}`,
      );
    }
    if (status.certificate) {
      return { cert: Buffer.from(status.certificate, "base64").toString("utf8"), key };
    }
  }
  throw new Error(
    `certificate request ${metadata.name} for ${node} was not approved and signed within ` +
      `${certificateWithinMs / 1000} s: is the credential in group system:bootstrappers:kubeadm:default-node-token?`,
  );
}
