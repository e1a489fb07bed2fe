import type { Payload } from "../../../../components/machine/payload";
import { certificateRequest, newPrivateKey, signed, signingKey } from "../../x509";
import type { ApiUser } from "../simulated/api";

const yearHours = 365 * 24;

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
  const { privateKeyPem: key } = await newPrivateKey();
  const subject = { organization: "system:masters", commonName: "local-azure:cloud-provider" };
  const request = await certificateRequest(await signingKey(key, "its key"), subject);
  const { certPem: cert } = await signed(await signingKey(caKey, "ca.key"), ca, request, {
    allowedUses: ["digital_signature", "client_auth"],
    validityPeriodHours: yearHours,
    isCaCertificate: false,
    setSubjectKeyId: false,
  });
  return { apiName: payload.apiName, ca, user: { cert, key } };
}
