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

/** What the plugin answers by gRPC. */
const ask = (method: "create" | "check" | "diff", request: object): Promise<any> =>
  new Promise((resolve, reject) =>
    (client as any)[method](request, (error: Error | null, response: unknown) =>
      error ? reject(error) : resolve(response),
    ),
  );

async function create(kind: string, inputs: Properties, preview = false): Promise<Properties> {
  const request = new wire.CreateRequest().setType(type(kind)).setProperties(encoded(inputs));
  return (await ask("create", request.setPreview(preview))).getProperties().toJavaScript();
}

async function check(kind: string, inputs: Properties): Promise<string[]> {
  const request = new wire.CheckRequest().setType(type(kind)).setNews(encoded(inputs));
  const failures: wire.CheckFailure[] = (await ask("check", request)).getFailuresList();
  return failures.map((one) => one.getReason());
}

async function replacedBy(news: Properties, state: Properties): Promise<string[]> {
  const request = new wire.DiffRequest()
    .setType(type("SelfSignedCert"))
    .setOldInputs(encoded(certificate))
    .setNews(encoded({ ...certificate, ...news }))
    .setOlds(encoded(state));
  return (await ask("diff", request)).getReplacesList();
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

it.each<[change: Properties, replaces: string[], endingIn?: number]>([
  [{ subject: { commonName: "b" } }, ["subject"]],
  [{ allowedUses: ["crl_signing"] }, ["allowedUses"]],
  [{ privateKeyPem: unknown }, ["privateKeyPem"]],
  // A default written out, a later renewal, one that is due by now, and a certificate that has expired.
  [{ setSubjectKeyId: false }, []],
  [{ earlyRenewalHours: 1 }, []],
  [{ earlyRenewalHours: 6 }, ["readyForRenewal"]],
  [{}, ["readyForRenewal"], -1],
])("for %j replaces %j", async (change, replaces, hours = 5) => {
  expect(await replacedBy(change, endingIn(hours))).toEqual(replaces);
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

const key = "key";
const requested = { subject: { commonName: "a" }, privateKeyPem: key };
it.each<[kind: string, inputs: Properties, says: RegExp]>([
  ["PrivateKey", { rsaBits: 2048 }, /^algorithm is required: RSA/],
  ["PrivateKey", { algorithm: "RSA" }, /^rsaBits is required: 2048/],
  ["PrivateKey", { ...rsa, algorithm: "ECDSA" }, /^algorithm is "ECDSA", expected RSA/],
  ["PrivateKey", { ...rsa, rsaBits: 4096 }, /^rsaBits is 4096, expected 2048/],
  [
    "PrivateKey",
    { ...rsa, ecdsaCurve: "P256" },
    /^ecdsaCurve is not supported.*algorithm, rsaBits/,
  ],
  [
    "SelfSignedCert",
    { ...certificate, privateKeyPem: key, allowedUses: ["signing"] },
    /^allowedUses is .*, expected /,
  ],
  [
    "SelfSignedCert",
    { ...certificate, privateKeyPem: key, validityPeriodHours: -1 },
    /^validityPeriodHours is .*, expected /,
  ],
  [
    "SelfSignedCert",
    { ...certificate, privateKeyPem: key, subject: { country: "DE" } },
    /^subject is .*, expected /,
  ],
  // Which it does not quote.
  [
    "SelfSignedCert",
    { ...certificate, privateKeyPem: ["hush"] },
    /^privateKeyPem is not what is expected: a text in PEM$/,
  ],
  [
    "CertRequest",
    { ...requested, ipAddresses: ["cp-1"] },
    /ipAddresses is \["cp-1"\], expected a list of IP/,
  ],
  ["CertRequest", { ...requested, ipAddresses: "10.0.0.1" }, /expected a list of IP addresses/],
  ["CertRequest", { ...requested, dnsNames: [""] }, /dnsNames is \[""\], expected a list of names/],
  ["CertRequest", { ...requested, uris: ["spiffe://a"] }, /uris is not supported/],
])("refuses a %s with %j", async (kind, inputs, says) => {
  expect(await check(kind, inputs)).toEqual([expect.stringMatching(says)]);
});
