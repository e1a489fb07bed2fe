import * as pulumi from "@pulumi/pulumi";

import { Certificates } from "../../../components/certificates";
import { deriveToken, expiration, JoinToken } from "../../../components/machine/join-token";
import { kubeletCertificate } from "../../../components/machine/kubelet-certificate";
import { Recorder, revealed, valueOf } from "../../support/record";
import {
  certRequest,
  filledInCertificates,
  firstKeys,
  locallySignedCert,
  machine,
} from "../../support/sample";

describe("join token", () => {
  const run = "2026-03-01T10:00:00.000Z";
  const machine = "zoned-test-workers-1";

  const build = async () => {
    const recorder = await Recorder.start();
    const join = new JoinToken(
      {
        machine,
        run,
        joinSecret: pulumi.output("the-key"),
      },
      { transformations: [recorder.watch] },
    );
    return { recorder, join };
  };

  const form = /^[a-z0-9]{6}\.[a-z0-9]{16}$/;

  it("makes tokens in kubeadm's form, the same in every release", () => {
    const { id, secret } = deriveToken("the-key", "a machine");

    expect(`${id}.${secret}`).toMatch(form);
    expect({ id, secret }).toEqual({ id: "vdhxqq", secret: "od8z6rejgw7fqch7" });
  });

  it.each([
    { other: "machine", key: "the-key", purpose: "zoned-test-workers-2/run" },
    { other: "run of its step", key: "the-key", purpose: "zoned-test-workers-1/rerun" },
    { other: "cluster", key: "another-key", purpose: "zoned-test-workers-1/run" },
  ])("gives another $other another token", ({ key, purpose }) => {
    const one = deriveToken("the-key", "zoned-test-workers-1/run");
    const other = deriveToken(key, purpose);

    expect(other.id).not.toBe(one.id);
    expect(other.secret).not.toBe(one.secret);
  });

  it("derives a secret token from the cluster's key, the machine and the run of its step", async () => {
    const { join } = await build();

    const { id, secret } = deriveToken("the-key", `${machine}/${run}`);

    expect(await valueOf(join.token)).toBe(`${id}.${secret}`);
    expect(await pulumi.isSecret(join.token)).toBe(true);
  });

  it("lets a token live for a day from the order of its run", () => {
    expect(expiration(run)).toBe("2026-03-02T10:00:00Z");
  });

  it("puts the token where the API looks for it", async () => {
    const { recorder, join } = await build();

    const { inputs, opts } = await recorder.only("kubernetes:core/v1:Secret");
    const [id, secret] = (await valueOf(join.token)).split(".");

    expect(inputs.type).toBe("bootstrap.kubernetes.io/token");
    expect(inputs.metadata).toEqual({ name: `bootstrap-token-${id}`, namespace: "kube-system" });
    const data = revealed(inputs.stringData);
    expect(data).toMatchObject({
      "token-id": id,
      "token-secret": secret,
      expiration: "2026-03-02T10:00:00Z",
      "usage-bootstrap-authentication": "true",
    });
    // The cluster deletes it, and there may be no API when its machine is replaced.
    expect(opts.retainOnDelete).toBe(true);
    // Who signs with it could hand out the cluster's address and CA to anybody.
    expect(data).not.toHaveProperty("usage-bootstrap-signing");
  });

  it("puts whoever joins with it into groups that Kubernetes accepts", async () => {
    const { recorder } = await build();

    const { inputs } = await recorder.only("kubernetes:core/v1:Secret");
    const groups = revealed(inputs.stringData)["auth-extra-groups"]!.split(",");

    expect(groups).toEqual([
      "system:bootstrappers:kubeadm:default-node-token",
      `system:bootstrappers:zoned:${machine}`,
    ]);
    for (const group of groups) {
      expect(group).toMatch(/^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/);
    }
  });

  it("lets it look at and remove the node of its own machine, and nothing else", async () => {
    const { recorder } = await build();

    const role = await recorder.only("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole");
    const binding = await recorder.only(
      "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding",
    );

    expect(role.inputs.rules).toEqual([
      { apiGroups: [""], resources: ["nodes"], resourceNames: [machine], verbs: ["get", "delete"] },
    ]);
    expect(binding.inputs.roleRef).toMatchObject({
      kind: "ClusterRole",
      name: role.inputs.metadata.name,
    });
    expect(binding.inputs.subjects).toEqual([
      {
        apiGroup: "rbac.authorization.k8s.io",
        kind: "Group",
        name: `system:bootstrappers:zoned:${machine}`,
      },
    ]);
  });

  it("names what has to exist before the machine joins: the token and its right", async () => {
    const { recorder, join } = await build();

    const awaited = (await recorder.all()).filter(({ resource }) =>
      join.resources.includes(resource!),
    );

    expect(awaited.map(({ inputs }) => inputs.kind).sort()).toEqual([
      "ClusterRoleBinding",
      "Secret",
    ]);
  });
});

describe("kubelet certificate", () => {
  async function build() {
    const recorder = await Recorder.start({ filledIn: filledInCertificates });
    const opts = { transformations: [recorder.watch] };
    const certificates = new Certificates("pki", firstKeys, opts);
    const made = kubeletCertificate(machine, { made: "now", certificates }, opts);
    const [files, validUntil] = await Promise.all([valueOf(made.files), valueOf(made.validUntil)]);
    const find = async (type: string, name: string) =>
      (await recorder.of(type)).find((one) => one.name === name)!.inputs;
    return { recorder, files, validUntil, find };
  }

  it("has a key of its own for each machine that is made under the name", async () => {
    const { recorder } = await build();

    const keys = await recorder.of("tls:index/privateKey:PrivateKey");
    const { opts } = keys.find(({ name }) => name === "zoned-test-cp-1-kubelet-key")!;
    expect((opts as pulumi.CustomResourceOptions).replacementTrigger).toBe("now");
  });

  it("is for the kubelet's name and address, signed by the cluster's CA, and a server's alone", async () => {
    const { find } = await build();

    const asked = await find(certRequest, "zoned-test-cp-1-kubelet-request");
    expect(asked).toMatchObject({
      subject: { commonName: "zoned-test-cp-1" },
      dnsNames: ["zoned-test-cp-1"],
      ipAddresses: ["172.16.2.4"],
    });
    expect(asked.subject.organization).toBeUndefined();
    const signed = await find(locallySignedCert, "zoned-test-cp-1-kubelet");
    expect(signed).toMatchObject({
      certRequestPem: "request zoned-test-cp-1-kubelet-request",
      caCertPem: "cert pki-cluster-ca",
      allowedUses: ["digital_signature", "server_auth"],
    });
    expect(revealed(signed.caPrivateKeyPem)).toBe("private pki-cluster-ca-key");
  });

  it("is renewed by any update in the second of its two years, and says when it ends", async () => {
    const { find, validUntil } = await build();

    const { validityPeriodHours, earlyRenewalHours } = await find(
      locallySignedCert,
      "zoned-test-cp-1-kubelet",
    );
    expect([validityPeriodHours, earlyRenewalHours]).toEqual([2 * 365 * 24, 365 * 24]);
    expect(validUntil).toBe("end of zoned-test-cp-1-kubelet");
  });

  it("lies where a living machine gets it too, its key for root alone", async () => {
    const { files } = await build();

    expect(files).toEqual([
      {
        path: "/var/lib/kubelet/pki/serving.crt",
        mode: "0644",
        content: "cert zoned-test-cp-1-kubelet",
      },
      {
        path: "/var/lib/kubelet/pki/serving.key",
        mode: "0600",
        content: "private zoned-test-cp-1-kubelet-key",
      },
    ]);
  });
});
