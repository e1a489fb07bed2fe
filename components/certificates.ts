import * as pulumi from "@pulumi/pulumi";
import * as tls from "@pulumi/tls";

import { privateKeyArgs } from "./key-algorithm";
import type { ClusterSpec } from "./kubeadm/kubeadm";

export interface KeyPair {
  readonly cert: pulumi.Output<string>;
  readonly key: pulumi.Output<string>;
}

/** What signs the tokens of service accounts. */
export interface TokenKey {
  readonly key: pulumi.Output<string>;
  /** The public one of this key, and then those of the others whose tokens are admitted, as one file. */
  readonly trusted: pulumi.Output<string>;
}

export interface CertificateAuthority extends KeyPair {
  /** This certificate, which signs, and then those of the other CAs that are trusted, as one file. */
  readonly trusted: pulumi.Output<string>;
}

/**
 * Ten years, as kubeadm gives its own CAs. A new CA reaches every machine and every kubeconfig, so
 * it is not renewed early: without a lead time Pulumi never plans a renewal by itself.
 */
const authorityHours = 87_600;

/** A year. Any `pulumi up` in its last 30 days renews it, and with it the stack's kubeconfig. */
const adminHours = { validityPeriodHours: 8_760, earlyRenewalHours: 720 };

/**
 * The keys that a cluster is born with. They come from here and not from `kubeadm init`, so that
 * the kubeconfig is an output, SSH is not needed, and any control plane machine can be replaced at
 * any time. Changing one replaces no machine, but every machine's bootstrap step runs again.
 *
 * The CAs and the keys of service accounts have numbers; see plan/rotations.ts.
 */
export class Certificates extends pulumi.ComponentResource {
  readonly cluster: CertificateAuthority;
  readonly frontProxy: CertificateAuthority;
  readonly etcd: CertificateAuthority;
  readonly serviceAccount: TokenKey;
  /** In group `kubeadm:cluster-admins`, which `kubeadm init` binds to the role cluster-admin. */
  readonly admin: KeyPair;
  /** From this one the tokens are derived by which workers join. */
  readonly joinSecret: pulumi.Output<string>;
  /** From this one the keys are derived by which Secrets are encrypted in etcd. */
  readonly encryptionSecret: pulumi.Output<string>;

  constructor(
    name: string,
    { cas, serviceAccountKeys }: Pick<ClusterSpec, "cas" | "serviceAccountKeys">,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("zoned:index:Certificates", name, {}, opts);
    // Pulumi replaces nothing that is protected, and certificates are renewed.
    const child = { parent: this, protect: false };

    /** Protected as this component, but for one that signs no more: that goes by a later update. */
    const privateKey = (what: string, isUsed = true) =>
      new tls.PrivateKey(`${name}-${what}-key`, privateKeyArgs, isUsed ? { parent: this } : child);
    const pair = (what: string, commonName: string, signs: boolean): KeyPair => {
      const key = privateKey(what, signs).privateKeyPem;
      const { certPem } = new tls.SelfSignedCert(
        `${name}-${what}`,
        {
          privateKeyPem: key,
          subject: { commonName },
          isCaCertificate: true,
          setSubjectKeyId: true,
          allowedUses: ["digital_signature", "key_encipherment", "cert_signing", "crl_signing"],
          validityPeriodHours: authorityHours,
          earlyRenewalHours: 0,
        },
        child,
      );
      return { cert: certPem, key };
    };
    const authority = (what: string, commonName: string): CertificateAuthority => {
      const [signing, ...others] = cas.keys.map((number, index) =>
        number === 1
          ? pair(what, commonName, index === 0)
          : pair(`${what}-${number}`, `${commonName}-${number}`, index === 0),
      ) as [KeyPair, ...KeyPair[]];
      const certificates = pulumi.all([signing.cert, ...others.map(({ cert }) => cert)]);
      return { ...signing, trusted: certificates.apply((texts) => texts.join("\n")) };
    };

    this.cluster = authority("cluster-ca", "kubernetes");
    this.frontProxy = authority("front-proxy-ca", "front-proxy-ca");
    this.etcd = authority("etcd-ca", "etcd-ca");

    const [signing, ...others] = serviceAccountKeys.keys.map((number, index) =>
      privateKey(number === 1 ? "service-account" : `service-account-${number}`, index === 0),
    ) as [tls.PrivateKey, ...tls.PrivateKey[]];
    const publicKeys = pulumi.all([signing, ...others].map(({ publicKeyPem }) => publicKeyPem));
    this.serviceAccount = {
      key: signing.privateKeyPem,
      trusted: publicKeys.apply((texts) => texts.join("")),
    };

    /** Another one with another CA, since who knows that CA's may know this one. It is made anew without a loss. */
    const keyOfGeneration = (what: string) =>
      new tls.PrivateKey(`${name}-${what}-key`, privateKeyArgs, {
        ...child,
        replacementTrigger: cas.keys[0],
      }).privateKeyPem;

    const adminKey = keyOfGeneration("admin");
    const request = new tls.CertRequest(
      `${name}-admin-request`,
      {
        privateKeyPem: adminKey,
        subject: { commonName: "kubernetes-admin", organization: "kubeadm:cluster-admins" },
      },
      child,
    );
    const admin = new tls.LocallySignedCert(
      `${name}-admin`,
      {
        certRequestPem: request.certRequestPem,
        caCertPem: this.cluster.cert,
        caPrivateKeyPem: this.cluster.key,
        allowedUses: ["digital_signature", "key_encipherment", "client_auth"],
        ...adminHours,
      },
      child,
    );
    this.admin = { cert: admin.certPem, key: adminKey };

    this.joinSecret = keyOfGeneration("join");
    this.encryptionSecret = privateKey("secrets").privateKeyPem;
    this.registerOutputs();
  }
}

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
