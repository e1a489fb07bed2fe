import * as pulumi from "@pulumi/pulumi";
import * as tls from "@pulumi/tls";

import { privateKeyArgs } from "./key-algorithm";
import type { Certificates } from "./certificates";

const yearHours = 8_760;

interface Server {
  readonly name: string;
  readonly dnsNames: string[];
  readonly ipAddresses?: string[];
}

/**
 * A server's key and certificate, by the cluster's CA. Two years; each `pulumi up` in the second one
 * renews it.
 *
 * @param names of the resources in Pulumi's state
 * @param keyOpts what besides `opts` makes another key
 */
export function servingCertificate(
  names: Readonly<Record<"key" | "request" | "certificate", string>>,
  { name, dnsNames, ipAddresses }: Server,
  { cluster }: Pick<Certificates, "cluster">,
  opts: pulumi.CustomResourceOptions,
  keyOpts: pulumi.CustomResourceOptions = {},
) {
  const { privateKeyPem } = new tls.PrivateKey(names.key, privateKeyArgs, { ...opts, ...keyOpts });
  const { certRequestPem } = new tls.CertRequest(
    names.request,
    // No organization, which would be a group of users: the certificate is a server's only.
    { privateKeyPem, subject: { commonName: name }, dnsNames, ipAddresses },
    opts,
  );
  const { certPem, validityEndTime } = new tls.LocallySignedCert(
    names.certificate,
    {
      certRequestPem,
      caCertPem: cluster.cert,
      caPrivateKeyPem: cluster.key,
      allowedUses: ["digital_signature", "server_auth"],
      validityPeriodHours: 2 * yearHours,
      earlyRenewalHours: yearHours,
    },
    opts,
  );
  return { certificate: certPem, key: privateKeyPem, validUntil: validityEndTime };
}
