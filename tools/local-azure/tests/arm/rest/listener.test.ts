import { X509Certificate } from "node:crypto";
import { get, type IncomingMessage } from "node:http";
import { get as getSecure } from "node:https";
import { text } from "node:stream/consumers";

import { testFolder } from "../../../../../tests/support/test-folder";
import { certificateIn, serveBoth } from "../../../arm/rest/listener";
import { metadataProxy } from "../../../arm/rest/metadata-proxy";
import { serveRest } from "../../../arm/rest/rest";
import { claimsOf } from "../../../machines/identity-token";
import { createResources, newArm } from "../../support/arm/fixture";
import { group, valid } from "../../support/arm/valid-resources";

const folder = testFolder();

it("has a certificate for every name by which clients reach it, from one authority at every start", async () => {
  const [first, second] = [await certificateIn(folder), await certificateIn(folder)];

  expect(second.authority).toBe(first.authority);
  for (const { cert } of [first, second]) {
    const certificate = new X509Certificate(cert);
    expect(certificate.verify(new X509Certificate(first.authority).publicKey)).toBe(true);
    expect(certificate.checkIP("127.0.0.1")).toBe("127.0.0.1");
    for (const host of ["localhost", "ours.blob.core.windows.net"]) {
      expect([host, certificate.checkHost(host) !== undefined]).toEqual([host, true]);
    }
  }
});

it("keeps idle connections longer than clients pause, by HTTP and by HTTPS", async () => {
  const certificate = await certificateIn(folder);
  const answer = async (_: unknown, response: { end: () => unknown }) => void response.end();
  const { port, close } = await serveBoth(0, answer, certificate);
  const options = { port, headers: { connection: "keep-alive" }, ca: certificate.authority };
  type Done = (answer: IncomingMessage) => void;
  const answers = await Promise.all(
    [(done: Done) => get(options, done), (done: Done) => getSecure(options, done)].map(
      (ask) => new Promise<IncomingMessage>((resolve, reject) => ask(resolve).on("error", reject)),
    ),
  );
  await close();

  for (const { headers } of answers) expect(headers["keep-alive"]).toBe("timeout=120");
});

describe("the metadata service, by way of its proxy", () => {
  const { arm } = newArm();
  let server: Awaited<ReturnType<typeof serveRest>>;
  beforeAll(async () => {
    await createResources(arm);
    server = await serveRest(arm, 0);
  });
  afterAll(() => server.close());

  /** What the metadata service answers a process on this machine, by way of its proxy. */
  const ask = (machine: string, path: string, host = "169.254.169.254") =>
    new Promise<{ status?: number; body: string }>((resolve, reject) => {
      const { username, hostname, port } = new URL(metadataProxy(machine, server.port).HTTP_PROXY);
      const credentials = Buffer.from(`${username}:`).toString("base64");
      const headers = { metadata: "true", "proxy-authorization": `Basic ${credentials}` };
      get({ hostname, port, path: `http://${host}${path}`, headers }, (response) => {
        const status = response.statusCode;
        text(response).then((body) => resolve({ status, body }), reject);
      }).on("error", reject);
    });

  it("describes the machine that a process stands for one on", async () => {
    const path = "/metadata/instance/compute/zone?api-version=2021-02-01&format=text";

    expect(await ask("cp-1", path)).toEqual({ status: 200, body: "1" });
    expect((await ask("cp-9", path)).status).toBe(404);
  });

  it("gives a process the token of an identity that its machine has, and of no other", async () => {
    const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/cluster`;
    await arm.put(identity, { location: "westeurope" });
    const { clientId, principalId } = arm.peek(identity)!;
    const askToken = (client: unknown) => {
      const resource = "https://management.azure.com";
      const query = { "api-version": "2019-08-01", resource, client_id: String(client) };
      return ask("cp-1", `/metadata/identity/oauth2/token?${new URLSearchParams(query)}`);
    };
    expect((await askToken(clientId)).status).toBe(400);

    await arm.put(valid.machine[0], {
      ...valid.machine[1],
      identity: { type: "UserAssigned", userAssignedIdentities: [identity] },
    });

    const { status, body } = await askToken(clientId);
    expect(status).toBe(200);
    expect(claimsOf(JSON.parse(body).access_token)).toMatchObject({
      oid: principalId,
      appid: clientId,
    });
    expect((await askToken("another")).status).toBe(400);
  });

  it("leads nowhere else", async () => {
    const { status } = await ask("cp-1", "/metadata/instance", "192.0.2.1");

    expect(status).toBeGreaterThanOrEqual(400);
  });
});
