import * as pulumi from "@pulumi/pulumi";

import { type Certificates, servingCertificate } from "../certificates";
import type { MachinePlan } from "../settings/topology";
import { kubeletCertificatePath, kubeletKeyPath, type PayloadFile } from "../kubeadm/payload-file";

export interface KubeletCertificate {
  readonly files: pulumi.Output<PayloadFile[]>;
  readonly validUntil: pulumi.Output<string>;
}

/**
 * The certificate by which API servers, metrics-server and `kubectl logs` know a kubelet. Its name
 * and address are known before there is a machine, so that no certificate request of a kubelet has
 * to be approved.
 *
 * Another one neither replaces a machine nor restarts a kubelet, which reads the file by itself.
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
  const stem = `${name}-kubelet`;
  const { certificate, key, validUntil } = servingCertificate(
    { key: `${stem}-key`, request: `${stem}-request`, certificate: stem },
    { name, dnsNames: [name], ipAddresses: [address] },
    certificates,
    opts,
    { replacementTrigger: made },
  );
  const files = pulumi.all([certificate, key]).apply(([certificateText, keyText]) => [
    { path: kubeletCertificatePath, mode: "0644", content: certificateText },
    { path: kubeletKeyPath, mode: "0600", content: keyText },
  ]);
  return { files, validUntil };
}
