import "reflect-metadata";

import { webcrypto, X509Certificate } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";

import * as x509 from "@peculiar/x509";

import { type Api, ApiError, type ApiUser } from "../api";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const certificateWithinMs = 60_000;

const newKeys = () => webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);

const pemOf = async (key: webcrypto.CryptoKey): Promise<string> =>
  x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** What a kubelet makes itself where its configuration names no certificate. */
export async function selfSigned(): Promise<KeyPair> {
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=kubelet",
    keys,
    signingAlgorithm: algorithm,
  });
  return { cert: certificate.toString("pem"), key: await pemOf(keys.privateKey) };
}

/** Whether the first of these CAs has signed a certificate, and not one that is only still trusted. */
export const isSignedBy = (authorities: string, certificate: string | undefined): boolean =>
  certificate !== undefined &&
  new X509Certificate(certificate).verify(new X509Certificate(authorities).publicKey);

/** A kubelet's certificate, got with a bootstrap credential as a kubelet gets it. */
export async function kubeletCertificate(api: Api, node: string): Promise<ApiUser> {
  const keys = await newKeys();
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ O: ["system:nodes"] }, { CN: [`system:node:${node}`] }],
    keys,
    signingAlgorithm: algorithm,
  });
  const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const { metadata } = await api.post(requests, {
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { generateName: "node-csr-" },
    spec: {
      request: Buffer.from(request.toString("pem")).toString("base64"),
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
      return {
        cert: Buffer.from(status.certificate, "base64").toString("utf8"),
        key: await pemOf(keys.privateKey),
      };
    }
  }
  throw new Error(
    `certificate request ${metadata.name} for ${node} was not approved and signed within ` +
      `${certificateWithinMs / 1000} s: is the credential in group system:bootstrappers:kubeadm:default-node-token?`,
  );
}
