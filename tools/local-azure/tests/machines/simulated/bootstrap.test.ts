import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Payload } from "../../../../../components/machine/payload";
import { discoveryDocument, keysDocument, keysUrl } from "../../../../../components/token-issuer";
import { testFolder } from "../../../../../tests/support/test-folder";
import { account, loginHost } from "../../../arm/resources/resource";
import { authorityFile, certificateIn } from "../../../arm/rest/listener";
import { serveApiProxy } from "../../../daemon/api-proxy";
import { TokenService } from "../../../entra";
import { claimsOf } from "../../../machines/identity-token";
import { loginByKey } from "../../../machines/simulated/bootstrap/snapshots";
import { checkFirstBoot, fileOf } from "../../../machines/simulated/bootstrap/payload";
import type { Binaries } from "../../../machines/simulated/control-plane/control-plane";
import { SimulatedMachines } from "../../../machines/simulated/simulated";
import { newArm } from "../../support/arm/fixture";
import { group } from "../../support/arm/valid-resources";
import { newFixture, scriptOf, vmOf } from "../../support/simulated/fixture";

const payload = {
  files: [{ path: "/etc/zoned/a", mode: "0600", content: "b" }],
} as Partial<Payload> as Payload;
const firstBootOf = (customData: string | undefined) =>
  checkFirstBoot({ ...vmOf("demo-cp-1", "1", "172.16.1.4"), customData }, payload);
const encoded = (text: string) => Buffer.from(text).toString("base64");
const unused =
  '#cloud-config\n{"write_files":[{"path":"/opt/zoned/first-boot.sh","content":"x"}]}\n';

it.each<[flaw: string, read: () => unknown, says: RegExp]>([
  [
    "a file missing",
    () => fileOf(payload, "/etc/c"),
    /brings no \/etc\/c; it brings \/etc\/zoned\/a/,
  ],
  ["no customData", () => firstBootOf(undefined), /first line is "#cloud-config"/],
  [
    "a script as customData",
    () => firstBootOf(encoded("#!/bin/sh\n")),
    /begins with "#!\/bin\/sh"/,
  ],
  [
    "customData without a file",
    () => firstBootOf(encoded("#cloud-config\n{}\n")),
    /writes no \/opt/,
  ],
  ["a file that nobody runs", () => firstBootOf(encoded(unused)), /runcmd does not run it/],
])("refuses %s", (_, read, says) => {
  expect(read).toThrow(says);
});

it.each([
  ["address", { privateAddress: "172.16.3.4" }, /172\.16\.3\.4.*172\.16\.2\.4/],
  ["name", { name: "demo-workers-2" }, /demo-workers-2.*demo-workers-1/],
])("refuses a payload with another machine's %s", async (_, change, says) => {
  const stateDir = testFolder();
  const limits = { api: 100, ready: 100, peers: 100 };
  const options = { stateDir, limits, binaries: {} as Binaries, log: () => undefined };
  const machines = new SimulatedMachines(options);
  const vm = vmOf("demo-workers-1", "2", "172.16.2.4");
  const text = scriptOf(
    await newFixture("demo.example.org"),
    { ...vm, ...change },
    { token: "a.b" },
  );
  try {
    await machines.create(vm);

    const { stderr } = await machines.runScript(vm, text);

    expect(stderr.trim().split("\n").slice(-2)).toEqual([
      expect.stringMatching(says),
      'step "packages" failed with exit code 1',
    ]);
  } finally {
    await machines.stop();
  }
});

const issuer = "https://oidcabc.blob.core.windows.net/issuer";
const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/cluster`;

it("a simulated machine logs in by the key of service accounts, as somebody whom Entra was told of", async () => {
  const folder = testFolder();
  const { privateKey, publicKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  const keyFile = join(folder, "sa.key");
  writeFileSync(keyFile, privateKey);
  const { arm } = newArm();
  await arm.put(group, { location: "westeurope" });
  const { body } = await arm.put(identity, { location: "westeurope" });
  const subject = "system:serviceaccount:kube-system:snapshots";
  await arm.put(`${identity}/federatedIdentityCredentials/snapshots`, {
    ...{ issuer, subject, audiences: ["api://AzureADTokenExchange"] },
  });
  const documents: Record<string, string> = {
    [`${issuer}/.well-known/openid-configuration`]: discoveryDocument(issuer),
    [keysUrl(issuer)]: keysDocument(publicKey),
  };
  const read = async (url: string) => JSON.parse(documents[url]!);
  const entra = await new TokenService(arm, read).serve(0, await certificateIn(folder));
  const proxy = await serveApiProxy(() => undefined, entra.port, 0);
  const access = { proxy: proxy.port, authority: authorityFile(folder) };
  const settings = {
    ...{ ISSUER: issuer, SUBJECT: subject, AUDIENCE: "api://AzureADTokenExchange" },
    LOGIN: `https://${loginHost}/${account.tenantId}/oauth2/v2.0/token`,
    CLIENT_ID: String(body["clientId"]),
  };

  const token = await loginByKey(keyFile, settings, access);
  const refused = loginByKey(
    keyFile,
    { ...settings, SUBJECT: "system:serviceaccount:a:b" },
    access,
  );

  expect(claimsOf(token)).toMatchObject({
    ...{ aud: "https://storage.azure.com", appid: body["clientId"] },
  });
  await expect(refused).rejects.toThrow(/federated credentials.*AADSTS700213/);
  await Promise.all([proxy.close(), entra.close()]);
});
