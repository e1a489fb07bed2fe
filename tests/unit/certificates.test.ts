import type * as pulumi from "@pulumi/pulumi";

import { Certificates, KeyPair } from "../../components/certificates";
import { Recorder, revealed, valueOf } from "../support/record";
import { firstKeys } from "../support/sample";

const privateKey = "tls:index/privateKey:PrivateKey";
const selfSigned = "tls:index/selfSignedCert:SelfSignedCert";
const request = "tls:index/certRequest:CertRequest";
const locallySigned = "tls:index/locallySignedCert:LocallySignedCert";

const build = async (change: Partial<typeof firstKeys> = {}, protect?: boolean) => {
  const recorder = await Recorder.start({
    filledIn: {
      [privateKey]: ({ name }) => ({
        privateKeyPem: `private ${name}`,
        publicKeyPem: `public ${name}\n`,
      }),
      [selfSigned]: ({ name }) => ({ certPem: `cert ${name}` }),
      [request]: ({ name }) => ({ certRequestPem: `request ${name}` }),
      [locallySigned]: ({ name }) => ({ certPem: `cert ${name}` }),
    },
  });
  const certificates = new Certificates(
    "pki",
    { ...firstKeys, ...change },
    { transformations: [recorder.watch], protect },
  );
  return { recorder, certificates };
};

/** Lifetimes beyond this would need a plan for renewal that does not exist. */
const nineYears = 9 * 365 * 24;

it("makes an authority each for the cluster, its aggregated APIs and etcd, under the names that kubeadm gives", async () => {
  const { recorder } = await build();

  const authorities = await recorder.of(selfSigned);

  expect(authorities.map(({ inputs }) => inputs.subject.commonName).sort()).toEqual([
    "etcd-ca",
    "front-proxy-ca",
    "kubernetes",
  ]);
  for (const { inputs } of authorities) {
    expect(inputs).toMatchObject({ isCaCertificate: true, setSubjectKeyId: true });
    expect(inputs.allowedUses).toContain("cert_signing");
  }
  expect(new Set(authorities.map(({ inputs }) => revealed(inputs.privateKeyPem))).size).toBe(3);
});

it("keeps the CAs that there are beside others, trusts all of them, and signs with the first one", async () => {
  const { recorder, certificates } = await build({
    cas: { keys: [2, 1], rewritten: true, past: [] },
  });

  const { cluster, etcd } = certificates;
  expect(await valueOf(cluster.cert)).toBe("cert pki-cluster-ca-2");
  expect(await valueOf(cluster.key)).toBe("private pki-cluster-ca-2-key");
  expect(await valueOf(cluster.trusted)).toBe("cert pki-cluster-ca-2\ncert pki-cluster-ca");
  expect(await valueOf(etcd.trusted)).toBe("cert pki-etcd-ca-2\ncert pki-etcd-ca");
  const names = (await recorder.of(selfSigned)).map(({ inputs }) => inputs.subject.commonName);
  expect(names.sort()).toEqual([
    ...["etcd-ca", "etcd-ca-2", "front-proxy-ca", "front-proxy-ca-2"],
    ...["kubernetes", "kubernetes-2"],
  ]);
  expect((await recorder.only(locallySigned)).inputs.caCertPem).toBe("cert pki-cluster-ca-2");
});

it("protects every key, if anything, but one that signs no more, which a later update takes away, and those that change with the CAs", async () => {
  const changing = { keys: [2, 1], rewritten: true, past: [] };
  const keptBy = async (...args: Parameters<typeof build>) => {
    const all = await (await build(...args)).recorder.all();
    const kept = all.filter(({ resource }) => (resource as any).__protect);
    return kept.map(({ name }) => name.replace(/^pki-(.*)-key$/, "$1")).sort();
  };

  expect(await keptBy({}, true)).toEqual([
    ...["cluster-ca", "etcd-ca", "front-proxy-ca"],
    ...["pki", "secrets", "service-account"],
  ]);
  expect(await keptBy({ cas: changing, serviceAccountKeys: changing }, true)).toEqual([
    ...["cluster-ca-2", "etcd-ca-2", "front-proxy-ca-2"],
    ...["pki", "secrets", "service-account-2"],
  ]);
  expect(await keptBy({}, false)).toEqual([]);
});

it("makes the keys of the administrator and of join tokens anew for another CA, since who knows that one's may know them", async () => {
  const triggers = async (...keys: number[]) => {
    const { recorder } = await build({ cas: { keys, rewritten: true, past: [] } });
    return (await recorder.of(privateKey)).flatMap(({ name, opts }) => {
      const { replacementTrigger } = opts as pulumi.CustomResourceOptions;
      return replacementTrigger === undefined ? [] : [[name, replacementTrigger]];
    });
  };

  for (const [signing = 0, ...others] of [[1], [1, 2], [2, 1], [2]]) {
    expect((await triggers(signing, ...others)).sort()).toEqual([
      ["pki-admin-key", signing],
      ["pki-join-key", signing],
    ]);
  }
});

it("renews no authority by itself, since a new one reaches every machine and every kubeconfig", async () => {
  const { recorder } = await build();

  const lasting = await recorder.of(selfSigned);

  expect(lasting).toHaveLength(3);
  for (const { inputs } of lasting) {
    expect(inputs.earlyRenewalHours).toBe(0);
    expect(inputs.validityPeriodHours).toBeGreaterThan(nineYears);
  }
});

it("makes every key RSA, since Entra takes no token that another one has signed", async () => {
  const { recorder } = await build();

  expect((await recorder.of(privateKey)).map(({ inputs }) => inputs)).toEqual(
    Array(7).fill({ algorithm: "RSA", rsaBits: 2048 }),
  );
});

it("gives its administrator a year, and renews it by any update of its last 30 days", async () => {
  const { recorder } = await build();

  expect((await recorder.only(locallySigned)).inputs).toMatchObject({
    validityPeriodHours: 365 * 24,
    earlyRenewalHours: 30 * 24,
  });
});

it("makes its administrator a member of the group that kubeadm lets administer", async () => {
  const { recorder } = await build();

  const asked = await recorder.only(request);
  const signed = await recorder.only(locallySigned);

  expect(asked.inputs.subject).toMatchObject({ organization: "kubeadm:cluster-admins" });
  expect(revealed(asked.inputs.privateKeyPem)).toBe("private pki-admin-key");
  expect(signed.inputs).toMatchObject({
    certRequestPem: "request pki-admin-request",
    caCertPem: "cert pki-cluster-ca",
  });
  expect(revealed(signed.inputs.caPrivateKeyPem)).toBe("private pki-cluster-ca-key");
  expect(signed.inputs.allowedUses).toContain("client_auth");
  expect(signed.inputs.allowedUses).not.toContain("cert_signing");
});

it("pairs every certificate with its own key", async () => {
  const { certificates } = await build();

  const pair = async ({ cert, key }: KeyPair) => [await valueOf(cert), await valueOf(key)];

  expect(await pair(certificates.cluster)).toEqual([
    "cert pki-cluster-ca",
    "private pki-cluster-ca-key",
  ]);
  expect(await pair(certificates.frontProxy)).toEqual([
    "cert pki-front-proxy-ca",
    "private pki-front-proxy-ca-key",
  ]);
  expect(await pair(certificates.etcd)).toEqual(["cert pki-etcd-ca", "private pki-etcd-ca-key"]);
  expect(await pair(certificates.admin)).toEqual(["cert pki-admin", "private pki-admin-key"]);
});

it("signs tokens with the first key of service accounts, and admits those of all, the first one first", async () => {
  const { serviceAccount } = (await build()).certificates;
  const changing = await build({
    serviceAccountKeys: { keys: [2, 1], rewritten: true, past: [] },
  });

  expect(await valueOf(serviceAccount.key)).toBe("private pki-service-account-key");
  expect(await valueOf(serviceAccount.trusted)).toBe("public pki-service-account-key\n");
  const { key, trusted } = changing.certificates.serviceAccount;
  expect(await valueOf(key)).toBe("private pki-service-account-2-key");
  // kubeadm takes the first one for that of the private key.
  expect(await valueOf(trusted)).toBe(
    "public pki-service-account-2-key\npublic pki-service-account-key\n",
  );
});

it.each([
  ["the workers' tokens", "joinSecret", "private pki-join-key"],
  ["the keys of Secrets", "encryptionSecret", "private pki-secrets-key"],
] as const)("derives %s from a key that serves nothing else", async (_, name, key) => {
  const { recorder, certificates } = await build();

  const secret = await valueOf(certificates[name]);
  const requests = JSON.stringify((await recorder.all()).map(({ inputs }) => inputs));

  expect(secret).toBe(key);
  expect(requests).not.toContain(secret);
});
