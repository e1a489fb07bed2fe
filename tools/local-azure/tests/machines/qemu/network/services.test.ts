import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

import { ManagedIdentityCredential } from "@azure/identity";

import { listen } from "../../../../../../tests/support/listen";
import { testFolder } from "../../../../../../tests/support/test-folder";
import { authorityIn } from "../../../../authority";
import { answer } from "../../../../machines/qemu/network/network-process";
import {
  firewallLogin,
  firewallProxy,
  type Passage,
} from "../../../../machines/qemu/network/firewall-process";
import { describe as metadata, serveMetadata } from "../../../../machines/qemu/network/metadata";

describe("the way to the internet", () => {
  const curl = (words: string[]) => promisify(execFile)("curl", words);

  const folder = testFolder();
  const passages: Passage[] = [];
  let port: number;

  beforeAll(async () => {
    const mirror = createServer(({ url, headers }, response) =>
      response.end(`mirror ${url} ${headers["proxy-authorization"] ?? "knows no login"}`),
    );
    port = await listen(
      firewallProxy({
        login: firewallLogin,
        authority: await authorityIn(folder, "firewall-ca.crt", { commonName: "company CA" }),
        mirror: { host: "127.0.0.1", port: await listen(mirror) },
        passed: (passage) => passages.push(passage),
      }),
    );
  });
  beforeEach(() => passages.splice(0));

  /** By curl, as on a machine; the answer and its status. */
  async function ask(url: string, options: string[] = [], given = firewallLogin): Promise<string> {
    const login = `${given.user}:${encodeURIComponent(given.password)}`;
    const through = ["--proxy", `http://${login}@127.0.0.1:${port}`];
    const trusting = ["--cacert", join(folder, "firewall-ca.crt")];
    const said = ["--silent", "--show-error", "--write-out", " %{http_code}"];
    const { stdout } = await curl([...[...said, ...through, ...trusting, ...options, url]]);
    return stdout;
  }

  it("opens what is asked of upstream's hosts, and has the mirror answer", async () => {
    expect(await ask("https://registry.k8s.io/v2/pause/manifests/3.10")).toBe(
      "mirror /v2/pause/manifests/3.10 knows no login 200",
    );
    expect(await ask("https://pkgs.k8s.io/core:/stable:/v1.37/deb/Release.key")).toBe(
      "mirror /apt/Release.key knows no login 200",
    );
    expect(passages).toEqual([
      { method: "GET", url: "https://registry.k8s.io/v2/pause/manifests/3.10", status: 200 },
      {
        ...{ method: "GET", status: 200 },
        url: "https://pkgs.k8s.io/core:/stable:/v1.37/deb/Release.key",
      },
    ]);
  });

  it("lets nobody out to anywhere else", async () => {
    expect(await ask("https://example.com/")).toContain("403");
    expect(await ask("http://example.com/")).toContain("403");
  });

  it("is not believed by who does not know the company's CA", async () => {
    const nobody = join(folder, "nobody.crt");
    writeFileSync(nobody, "");
    await expect(ask("https://registry.k8s.io/v2/", ["--cacert", nobody])).rejects.toThrow(
      /CA|cert/,
    );
  });

  it.each(["https://registry.k8s.io/v2/", "http://registry.k8s.io/v2/"])(
    "wants a login for %s",
    async (url) => {
      const wrong = { ...firewallLogin, password: "wrong" };
      const said = await ask(url, [], wrong).catch(({ message }: Error) => message);

      expect(said).toContain("407");
      expect(passages.map(({ status }) => status)).toEqual([407]);
    },
  );

  const known = (name: string) => (name === "api.example" ? "203.0.113.7" : undefined);

  /** A query as resolvers send it: one question, recursion asked for. */
  function query(name: string, type: number): Buffer {
    const labels = name.split(".").flatMap((label) => [label.length, ...Buffer.from(label)]);
    return Buffer.from([0xbe, 0xef, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, type, 0, 1]);
  }

  const code = (reply: Buffer | undefined) => reply && reply[3]! & 0x0f;
  const answers = (reply: Buffer | undefined) => reply?.readUInt16BE(6);

  test("a known name has its address, whatever its letters' case", () => {
    const reply = answer(query("API.example", 1), known);
    expect(reply?.readUInt16BE(0)).toBe(0xbeef);
    expect([code(reply), answers(reply)]).toEqual([0, 1]);
    expect([...reply!.subarray(-4)]).toEqual([203, 0, 113, 7]);
  });

  test("a known name has no address of the other kind, and exists all the same", () => {
    const reply = answer(query("api.example", 28), known);
    expect([code(reply), answers(reply)]).toEqual([0, 0]);
  });

  test("any other name does not exist", () => {
    expect(code(answer(query("elsewhere.example", 1), known))).toBe(3);
  });

  test("what is no query gets no answer", () => {
    const response = query("api.example", 1);
    response[2]! |= 0x80;
    expect(answer(response, known)).toBeUndefined();
    expect(answer(query("api.example", 1).subarray(0, 20), known)).toBeUndefined();
    expect(answer(Buffer.from("hello"), known)).toBeUndefined();
  });
});

describe("the metadata service", () => {
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

  const ask = (
    path: string,
    headers: Record<string, string> = { metadata: "true" },
    of = machine,
  ) => metadata(new URL(path, "http://169.254.169.254"), headers, of);

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
});
