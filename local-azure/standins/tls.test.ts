import { createRequire } from "node:module";
import type * as Grpc from "@grpc/grpc-js";
import { ResourceProviderClient } from "@pulumi/pulumi/proto/provider_grpc_pb";
import * as wire from "@pulumi/pulumi/proto/provider_pb";
import { Served } from "./protocol";
import { encoded, Properties } from "./protocol/values";
import { serveTls } from "./tls";

const { credentials } = createRequire(require.resolve("@pulumi/pulumi"))(
  "@grpc/grpc-js",
) as typeof Grpc;

const secretOf = (value: any) =>
  value["4dabf18193072939515e22adb298388d"] === "1b47061264138c4ac30d75fd1eb44270"
    ? value.value
    : undefined;

const unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
const hour = 3_600_000;

let served: Served;
let client: ResourceProviderClient;

beforeAll(async () => {
  served = await serveTls(0);
  client = new ResourceProviderClient(`127.0.0.1:${served.port}`, credentials.createInsecure());
});

afterAll(async () => {
  client.close();
  await served.close();
});

const type = (kind: string) => `tls:index/${kind[0]?.toLowerCase()}${kind.slice(1)}:${kind}`;

function create(kind: string, inputs: Properties, preview = false): Promise<any> {
  const request = new wire.CreateRequest()
    .setType(type(kind))
    .setProperties(encoded(inputs))
    .setPreview(preview);
  return new Promise((resolve, reject) =>
    client.create(request, (error, response) =>
      error ? reject(error) : resolve(response.getProperties()?.toJavaScript()),
    ),
  );
}

function check(kind: string, inputs: Properties): Promise<string[]> {
  const request = new wire.CheckRequest().setType(type(kind)).setNews(encoded(inputs));
  return new Promise((resolve, reject) =>
    client.check(request, (error, response) =>
      error ? reject(error) : resolve(response.getFailuresList().map((one) => one.getReason())),
    ),
  );
}

function replacedBy(
  kind: string,
  olds: Properties,
  news: Properties,
  state: Properties,
): Promise<string[]> {
  const request = new wire.DiffRequest()
    .setType(type(kind))
    .setOldInputs(encoded(olds))
    .setNews(encoded(news))
    .setOlds(encoded(state));
  return new Promise((resolve, reject) =>
    client.diff(request, (error, response) =>
      error ? reject(error) : resolve(response.getReplacesList()),
    ),
  );
}

const certificate = {
  allowedUses: ["cert_signing"],
  validityPeriodHours: 10,
  isCaCertificate: true,
};
const endingIn = (hours: number) => ({
  validityEndTime: new Date(Date.now() + hours * hour).toISOString(),
});

it("marks private keys as secret, and public ones not", async () => {
  const state = await create("PrivateKey", { algorithm: "ECDSA", ecdsaCurve: "P256" });

  expect(secretOf(state.privateKeyPem)).toMatch(/^-----BEGIN EC PRIVATE KEY-----/);
  expect(secretOf(state.privateKeyPemPkcs8)).toBeDefined();
  expect(secretOf(state.privateKeyOpenssh)).toBeDefined();
  expect(state.publicKeyPem).toMatch(/^-----BEGIN PUBLIC KEY-----/);
});

it("makes no key in a preview", async () => {
  const state = await create("PrivateKey", { algorithm: "RSA" }, true);

  expect(secretOf(state.privateKeyPem)).toBe(unknown);
  expect(state.publicKeyPem).toBe(unknown);
  expect(state.rsaBits).toBe(2048);
});

it("keeps the key that a certificate was made with secret", async () => {
  const key = await create("PrivateKey", { algorithm: "ED25519" });
  const privateKeyPem = secretOf(key.privateKeyPem);

  const state = await create("SelfSignedCert", { ...certificate, privateKeyPem });

  expect(secretOf(state.privateKeyPem)).toBe(privateKeyPem);
  expect(state).toMatchObject({ keyAlgorithm: "ED25519", readyForRenewal: false });
  expect(Date.parse(state.validityEndTime) - Date.parse(state.validityStartTime)).toBe(10 * hour);
});

it.each([
  { what: "another name", change: { subject: { commonName: "b" } }, replaces: ["subject"] },
  { what: "another use", change: { allowedUses: ["crl_signing"] }, replaces: ["allowedUses[0]"] },
  { what: "an unknown key", change: { privateKeyPem: unknown }, replaces: ["privateKeyPem"] },
  { what: "a default written out", change: { setSubjectKeyId: false }, replaces: [] },
  { what: "a later renewal", change: { earlyRenewalHours: 1 }, replaces: [] },
  {
    what: "a renewal that is due by now",
    change: { earlyRenewalHours: 6 },
    replaces: ["readyForRenewal"],
  },
])("for $what replaces $replaces", async ({ change, replaces }) => {
  const news = { ...certificate, ...change };

  expect(await replacedBy("SelfSignedCert", certificate, news, endingIn(5))).toEqual(replaces);
});

it("replaces a certificate that has expired", async () => {
  expect(await replacedBy("SelfSignedCert", certificate, certificate, endingIn(-1))).toEqual([
    "readyForRenewal",
  ]);
});

it.each([
  { flaw: "no algorithm", inputs: {}, says: "algorithm must be given" },
  {
    flaw: "a strange algorithm",
    inputs: { algorithm: "DSA" },
    says: 'algorithm is "DSA", and must be one of RSA, ECDSA, ED25519',
  },
])("refuses a key with $flaw", async ({ inputs, says }) => {
  expect(await check("PrivateKey", inputs)).toEqual([says]);
});

it("refuses a use that no certificate has", async () => {
  expect(await check("SelfSignedCert", { ...certificate, allowedUses: ["signing"] })).toEqual([
    expect.stringMatching(/^allowedUses names signing, and a certificate can be allowed digital_/),
  ]);
});
