import { createRequire } from "node:module";
import type * as Grpc from "@grpc/grpc-js";
import { ResourceProviderClient } from "@pulumi/pulumi/proto/provider_grpc_pb";
import * as wire from "@pulumi/pulumi/proto/provider_pb";
import { Served } from "../../../plugins/protocol/protocol";
import { encoded, isProperties, Properties, Value } from "../../../plugins/protocol/values";
import { serveTls } from "../../../plugins/tls/tls";

const { credentials } = createRequire(require.resolve("@pulumi/pulumi"))(
  "@grpc/grpc-js",
) as typeof Grpc;

const secretOf = (value: Value): Value =>
  isProperties(value) &&
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

function create(kind: string, inputs: Properties, preview = false): Promise<Properties> {
  const request = new wire.CreateRequest()
    .setType(type(kind))
    .setProperties(encoded(inputs))
    .setPreview(preview);
  return new Promise((resolve, reject) =>
    client.create(request, (error, response) =>
      error ? reject(error) : resolve(response.getProperties()?.toJavaScript() as Properties),
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

const rsa = { algorithm: "RSA", rsaBits: 2048 };

const certificate = {
  subject: { commonName: "a" },
  allowedUses: ["cert_signing"],
  validityPeriodHours: 10,
  isCaCertificate: true,
};
const endingIn = (hours: number) => ({
  validityEndTime: new Date(Date.now() + hours * hour).toISOString(),
});

it("marks private keys as secret, and public ones not", async () => {
  const state = await create("PrivateKey", rsa);

  expect(secretOf(state.privateKeyPem)).toMatch(/^-----BEGIN RSA PRIVATE KEY-----/);
  expect(state.publicKeyPem).toMatch(/^-----BEGIN PUBLIC KEY-----/);
});

it("makes no key in a preview", async () => {
  const state = await create("PrivateKey", rsa, true);

  expect(secretOf(state.privateKeyPem)).toBe(unknown);
  expect(state.publicKeyPem).toBe(unknown);
  expect(state.rsaBits).toBe(2048);
});

it("keeps the key that a certificate was made with secret", async () => {
  const key = await create("PrivateKey", rsa);
  const privateKeyPem = secretOf(key.privateKeyPem);

  const state = await create("SelfSignedCert", { ...certificate, privateKeyPem });

  expect(secretOf(state.privateKeyPem)).toBe(privateKeyPem);
  expect(state).toMatchObject({ keyAlgorithm: "RSA", readyForRenewal: false });
  expect(
    Date.parse(String(state.validityEndTime)) - Date.parse(String(state.validityStartTime)),
  ).toBe(10 * hour);
});

it.each([
  { what: "another name", change: { subject: { commonName: "b" } }, replaces: ["subject"] },
  { what: "another use", change: { allowedUses: ["crl_signing"] }, replaces: ["allowedUses"] },
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
  { earlyRenewalHours: 9, ready: false },
  { earlyRenewalHours: 10, ready: true },
])(
  "creates a certificate of 10 hours that may be renewed $earlyRenewalHours hours early with readyForRenewal $ready",
  async ({ earlyRenewalHours, ready }) => {
    const privateKeyPem = secretOf((await create("PrivateKey", rsa)).privateKeyPem);

    const state = await create("SelfSignedCert", {
      ...certificate,
      privateKeyPem,
      earlyRenewalHours,
    });

    expect(state.readyForRenewal).toBe(ready);
  },
);

it.each([
  { problem: "no algorithm", inputs: { rsaBits: 2048 }, says: "algorithm is required: RSA" },
  { problem: "no length", inputs: { algorithm: "RSA" }, says: "rsaBits is required: 2048" },
  {
    problem: "another algorithm than the program's",
    inputs: { ...rsa, algorithm: "ECDSA" },
    says: 'algorithm is "ECDSA", expected RSA',
  },
  {
    problem: "more bits than the program's",
    inputs: { ...rsa, rsaBits: 4096 },
    says: "rsaBits is 4096, expected 2048",
  },
  {
    problem: "an input that the program does not use",
    inputs: { ...rsa, ecdsaCurve: "P256" },
    says: "ecdsaCurve is not supported by this stand-in for the tls plugin; it supports algorithm, rsaBits",
  },
])("refuses a key with $problem", async ({ inputs, says }) => {
  expect(await check("PrivateKey", inputs)).toEqual([says]);
});

it.each([
  { allowedUses: ["signing"] },
  { validityPeriodHours: -1 },
  { subject: { country: "DE" } },
])("refuses a certificate with %j", async (change) => {
  const inputs = { ...certificate, privateKeyPem: "key", ...change };

  expect(await check("SelfSignedCert", inputs)).toEqual([
    expect.stringMatching(`^${Object.keys(change)[0]} is .*, expected `),
  ]);
});

it.each([
  { change: { ipAddresses: ["cp-1"] }, says: 'ipAddresses is ["cp-1"], expected a list of IP' },
  { change: { ipAddresses: "10.0.0.1" }, says: "expected a list of IP addresses" },
  { change: { dnsNames: [""] }, says: 'dnsNames is [""], expected a list of names' },
  { change: { uris: ["spiffe://a"] }, says: "uris is not supported" },
])("refuses a request with %j", async ({ change, says }) => {
  const inputs = { subject: { commonName: "a" }, privateKeyPem: "key", ...change };

  expect(await check("CertRequest", inputs)).toEqual([expect.stringContaining(says)]);
});

it("does not quote a key that it refuses", async () => {
  const inputs = { ...certificate, privateKeyPem: ["hush"] };

  expect(await check("SelfSignedCert", inputs)).toEqual([
    "privateKeyPem is not what is expected: a text in PEM",
  ]);
});
