import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

import { ManagedIdentityCredential } from "@azure/identity";

import { describe as answer, serveMetadata } from "../../../../machines/qemu/network/metadata";

const identity = (digit: string) => ({
  resourceId: `/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${digit}`,
  clientId: `${digit}0000000-0000-4000-8000-00000000c11e`,
  principalId: `${digit}0000000-0000-4000-8000-000000000b7e`,
});

const machine = {
  address: "172.16.1.4",
  subnet: { address: "172.16.1.0", prefix: "24" },
  mac: "00:0d:3a:01:02:03",
  compute: { name: "cp-1", vmId: "abc", zone: "1" },
  identities: [identity("1"), identity("2")],
  inboundRules: [
    {
      frontendIpAddress: "203.0.113.1",
      protocol: "tcp",
      frontendPort: 6443,
      backendPort: 6443,
      privateIpAddress: "172.16.1.4",
    },
  ],
};

const ask = (path: string, headers: Record<string, string> = { metadata: "true" }, of = machine) =>
  answer(new URL(path, "http://169.254.169.254"), headers, of);

let identities: (typeof machine)["identities"];
let server: Server;

beforeAll(async () => {
  server = await serveMetadata({ address: "127.0.0.1", port: 0 }, () => ({
    ...machine,
    identities,
  }));
  // The library keeps the first address that it finds.
  process.env["AZURE_POD_IDENTITY_AUTHORITY_HOST"] =
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

beforeEach(() => (identities = machine.identities));

afterAll(() => {
  delete process.env["AZURE_POD_IDENTITY_AUTHORITY_HOST"];
  server.closeAllConnections();
  server.close();
});

/** The claims in the token that Microsoft's credential gets for Azure's API. */
async function claimsFor(credential: ManagedIdentityCredential): Promise<object> {
  const { token } = await credential.getToken("https://management.azure.com/.default");
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as object;
}

const instance = "/metadata/instance";
const version = "api-version=2021-02-01";
const balancing = "/metadata/loadbalancer?api-version=2020-10-01&format=json";
const unbalanced = { ...machine, inboundRules: [] };
test.each<[path: string, answer: object, headers?: Record<string, string>, of?: typeof machine]>([
  // One value as text, as the bootstrap step reads it, and no leaf as JSON.
  [`${instance}/compute/vmId?${version}&format=text`, { status: 200, body: "abc", isText: true }],
  [`${instance}/compute/vmId?${version}`, { status: 404 }],
  [`${instance}/compute/nothing?${version}`, { status: 404 }],
  [
    `${instance}?${version}`,
    {
      body: {
        compute: { name: "cp-1", zone: "1" },
        network: { interface: [{ macAddress: "000D3A010203" }] },
      },
    },
  ],
  // As Azure's node manager spells the header, and its version.
  [`${instance}?api-version=2021-10-01&format=json`, { status: 200 }, { metadata: "True" }],
  [
    balancing,
    {
      status: 200,
      body: { loadbalancer: { publicIpAddresses: [], inboundRules: [{ frontendPort: 6443 }] } },
    },
  ],
  [balancing, { status: 404 }, undefined, unbalanced],
  [`${instance}?api-version=2000-01-01`, { status: 400 }],
  // Without its header, and through a proxy.
  [`${instance}?${version}`, { status: 400 }, {}],
  [`${instance}?${version}`, { status: 400 }, { metadata: "true", "x-forwarded-for": "1" }],
])("answers to %s %j (%j)", (path, answer, headers = { metadata: "true" }, of = machine) => {
  expect(ask(path, headers, of)).toMatchObject(answer);
});

test("Microsoft's credential gets a token of the identity that it names, in any of three ways", async () => {
  const { clientId, principalId, resourceId } = identity("2");
  const expected = {
    oid: principalId,
    appid: clientId,
    xms_mirid: resourceId,
    aud: expect.stringMatching(/^https:\/\/management\.azure\.com/),
  };

  expect(await claimsFor(new ManagedIdentityCredential({ clientId }))).toMatchObject(expected);
  expect(await claimsFor(new ManagedIdentityCredential({ resourceId }))).toMatchObject(expected);
  expect(await claimsFor(new ManagedIdentityCredential({ objectId: principalId }))).toMatchObject(
    expected,
  );
});

test("a name is needed where a machine has several identities, and refused where it is not among them", async () => {
  await expect(claimsFor(new ManagedIdentityCredential())).rejects.toThrow(
    /Multiple user assigned identities exist/,
  );
  await expect(
    claimsFor(new ManagedIdentityCredential({ clientId: identity("3").clientId })),
  ).rejects.toThrow(/Identity not found/);

  identities = [identity("1")];

  expect(await claimsFor(new ManagedIdentityCredential())).toMatchObject({
    appid: identity("1").clientId,
  });
});

test("a token is for Azure's interfaces or for storage, and for nothing that the tenant does not know", () => {
  const token = (resource: string) =>
    ask(
      `/metadata/identity/oauth2/token?api-version=2018-02-01&resource=${resource}&client_id=${identity("1").clientId}`,
    );

  expect(token("https://storage.azure.com/")).toMatchObject({
    status: 200,
    body: { resource: "https://storage.azure.com/", token_type: "Bearer" },
  });
  expect(token("https://zonedbackups.blob.core.windows.net").status).toBe(200);
  expect(token("https://storage.example.com/")).toMatchObject({
    status: 400,
    body: { error: "invalid_resource" },
  });
});
