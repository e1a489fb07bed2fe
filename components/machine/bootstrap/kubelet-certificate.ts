import * as pulumi from "@pulumi/pulumi";
import * as tls from "@pulumi/tls";

import type { Certificates } from "../../certificates";
import type { MachinePlan } from "../../plan/topology";
import type { PayloadFile } from "./bootstrap";

/** The kubelet's serving certificate and key on every machine. */
export const kubeletCertificatePath = "/var/lib/kubelet/pki/serving.crt";
export const kubeletKeyPath = "/var/lib/kubelet/pki/serving.key";

const yearHours = 8_760;

export interface KubeletCertificate {
  readonly files: pulumi.Output<PayloadFile[]>;
  readonly validUntil: pulumi.Output<string>;
}

/**
 * The certificate by which API servers, metrics-server and `kubectl logs` know a kubelet. Its name
 * and address are known before there is a machine, so that no certificate request of a kubelet has
 * to be approved.
 *
 * Two years; each `pulumi up` in the second one renews it. Neither replaces a machine or restarts a
 * kubelet, which reads another file by itself.
 *
 * @param made when the machine was ordered: another one gets a key of its own
 */
export function kubeletCertificate(
  { name, address }: MachinePlan,
  {
    made,
    certificates,
  }: { readonly made: string; readonly certificates: Pick<Certificates, "cluster"> },
  opts: pulumi.CustomResourceOptions,
): KubeletCertificate {
  const privateKey = new tls.PrivateKey(
    `${name}-kubelet-key`,
    { algorithm: "ECDSA", ecdsaCurve: "P256" },
    { ...opts, replacementTrigger: made },
  );
  const request = new tls.CertRequest(
    `${name}-kubelet-request`,
    {
      privateKeyPem: privateKey.privateKeyPem,
      // No user's name: the certificate is a server's only.
      subject: { commonName: name },
      dnsNames: [name],
      ipAddresses: [address],
    },
    opts,
  );
  const { certPem, validityEndTime } = new tls.LocallySignedCert(
    `${name}-kubelet`,
    {
      certRequestPem: request.certRequestPem,
      caCertPem: certificates.cluster.cert,
      caPrivateKeyPem: certificates.cluster.key,
      allowedUses: ["digital_signature", "server_auth"],
      validityPeriodHours: 2 * yearHours,
      earlyRenewalHours: yearHours,
    },
    opts,
  );
  const files = pulumi.all([certPem, privateKey.privateKeyPem]).apply(([certificate, key]) => [
    { path: kubeletCertificatePath, mode: "0644", content: certificate },
    { path: kubeletKeyPath, mode: "0600", content: key },
  ]);
  return { files, validUntil: validityEndTime };
}
