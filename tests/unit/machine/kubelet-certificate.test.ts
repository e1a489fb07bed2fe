import type * as pulumi from "@pulumi/pulumi";

import { Certificates } from "../../../components/certificates";
import { kubeletCertificate } from "../../../components/machine/kubelet-certificate";
import {
  certRequest,
  filledInCertificates,
  firstKeys,
  locallySignedCert,
  machine,
} from "../../support/sample";
import { Recorder, revealed, valueOf } from "../../support/record";

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
