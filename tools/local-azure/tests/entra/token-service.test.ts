import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { WorkloadIdentityCredential } from "@azure/identity";

import { testFolder } from "../../../../tests/support/test-folder";
import { account } from "../../arm/resources/resource";
import { certificateIn } from "../../arm/rest/listener";
import { TokenService } from "../../entra";
import { claimsOf } from "../../machines/identity-token";
import { newArm } from "../support/arm/fixture";
import { group } from "../support/arm/valid-resources";

const issuer = "https://oidcabc.blob.core.windows.net/issuer";
const subject = "system:serviceaccount:shop:app";
const audience = "api://AzureADTokenExchange";
const identityId = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/app`;
const scope = "https://storage.azure.com/.default";

const rsa = () => generateKeyPairSync("rsa", { modulusLength: 2048 });
const [published, other] = [rsa(), rsa()];
const elliptic = generateKeyPairSync("ec", { namedCurve: "P-256" });

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

interface Token {
  readonly claims?: object;
  readonly alg?: string;
  readonly key?: KeyObject;
  readonly kid?: string;
}

/** A service account's token as an API server gives it, but for these. */
function tokenOf({ claims, alg = "RS256", key = published.privateKey, kid = "now" }: Token) {
  const now = Math.floor(Date.now() / 1000);
  const times = { nbf: now, exp: now + 3600 };
  const text = `${part({ alg, kid })}.${part({ iss: issuer, sub: subject, aud: [audience], ...times, ...claims })}`;
  return `${text}.${sign("sha256", Buffer.from(text), key).toString("base64url")}`;
}

/** What the issuer has published. */
const documents: Record<string, unknown> = {
  [`${issuer}/.well-known/openid-configuration`]: {
    ...{ issuer, jwks_uri: `${issuer}/openid/v1/jwks` },
  },
  [`${issuer}/openid/v1/jwks`]: {
    keys: [{ ...published.publicKey.export({ format: "jwk" }), kid: "now" }],
  },
};

let folder: string;
let service: Awaited<ReturnType<TokenService["serve"]>>;
let clientId: string;
let hidden: string | undefined;
let ca: string;

beforeAll(async () => {
  folder = testFolder();
  const { arm } = newArm();
  await arm.put(group, { location: "westeurope" });
  const { body } = await arm.put(identityId, { location: "westeurope" });
  clientId = String(body["clientId"]);
  await arm.put(`${identityId}/federatedIdentityCredentials/app`, {
    ...{ issuer, subject, audiences: [audience] },
  });
  const certificate = await certificateIn(folder);
  ca = certificate.authority;
  const read = async (url: string) => (url === hidden ? undefined : documents[url]);
  service = await new TokenService(arm, read).serve(0, certificate);
});
beforeEach(() => (hidden = undefined));
afterAll(() => service.close());

/** What Microsoft's credential gets, that knows what a pod knows. */
async function login(
  token: Token = {},
  { client = clientId, tenant = account.tenantId, wanted = scope } = {},
) {
  const tokenFilePath = join(folder, "token");
  writeFileSync(tokenFilePath, tokenOf(token));
  const credential = new WorkloadIdentityCredential({
    ...{ clientId: client, tenantId: tenant, tokenFilePath },
    authorityHost: `https://127.0.0.1:${service.port}`,
    // No such host is in Microsoft's list.
    disableInstanceDiscovery: true,
    tlsOptions: { ca },
    retryOptions: { maxRetries: 0 },
  });
  return claimsOf((await credential.getToken(wanted)).token);
}

it("gives a service account's bearer the token of the identity that knows it", async () => {
  expect(await login()).toMatchObject({
    ...{ aud: "https://storage.azure.com", appid: clientId, tid: account.tenantId },
  });
});

it.each<[string, Token, RegExp]>([
  [
    "of another issuer",
    { claims: { iss: "https://kubernetes.default.svc.cluster.local" } },
    /AADSTS700211: .*kubernetes\.default/,
  ],
  [
    "of another service account",
    { claims: { sub: "system:serviceaccount:shop:other" } },
    /AADSTS700213: .*shop:other/,
  ],
  ["for somebody else", { claims: { aud: ["vault"] } }, /AADSTS700212: .*vault/],
  ["that has ended", { claims: { exp: 1_700_000_000 } }, /AADSTS700024/],
  ["of an ECDSA key", { alg: "ES256", key: elliptic.privateKey }, /AADSTS5002738: .*ES256/],
  [
    "of a key that is not published",
    { key: other.privateKey, kid: "next" },
    /AADSTS700027: .*next/,
  ],
  ["that another key has signed", { key: other.privateKey }, /AADSTS700027/],
])("refuses a token %s", async (_, token, expected) => {
  await expect(login(token)).rejects.toThrow(expected);
});

it("refuses an identity or a tenant that there is not, and a service that it does not know", async () => {
  await expect(login({}, { client: account.tenantId })).rejects.toThrow(/AADSTS700016/);
  await expect(login({}, { wanted: "https://storage.example.com/.default" })).rejects.toThrow(
    /AADSTS500011/,
  );
});

/** What is answered to a form, as Go's library sends one. */
async function post(scope: string): Promise<Record<string, unknown>> {
  const form = new URLSearchParams({
    ...{ client_id: clientId, grant_type: "client_credentials", scope },
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    client_assertion: tokenOf({}),
  });
  const url = `http://127.0.0.1:${service.port}/${account.tenantId}/oauth2/v2.0/token`;
  return (await (await fetch(url, { method: "POST", body: form })).json()) as never;
}

it("takes the scopes of OpenID Connect beside the one that a token is for, and no second one", async () => {
  const resource = "https://management.core.windows.net/";
  const [answer, refused] = await Promise.all([
    post(`${resource}/.default openid offline_access profile`),
    post(`${resource}/.default ${scope}`),
  ]);

  expect(claimsOf(String(answer["access_token"]))).toMatchObject({ aud: resource });
  expect(refused["error_description"]).toMatch(/^AADSTS1002012: /);
});

it.each(Object.keys(documents))("refuses everybody while %s cannot be read", async (url) => {
  hidden = url;

  await expect(login()).rejects.toThrow(/AADSTS50166/);
});
