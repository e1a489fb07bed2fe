import { execFile } from "node:child_process";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { listOf } from "../blobs/blob-service";
import { allowHttp, withBlobs } from "./support/arm/blobs";
import { all } from "./support/arm/fixture";
import { roleDefinition, storage, subscription, valid } from "./support/arm/valid-resources";

describe("curl", () => {
  const run = promisify(execFile);

  type Built = Parameters<Parameters<typeof withBlobs>[0]>[0];

  /** Status and x-ms-error-code of an answer, and its body; `headers` are added, or taken away. */
  async function curl(
    { endpoint, token }: Built,
    words: readonly string[],
    path: string,
    headers: Readonly<Record<string, string | undefined>> = {},
  ) {
    const sent = Object.entries({
      ...{ authorization: `Bearer ${token()}`, "x-ms-version": "2024-11-04" },
      ...headers,
    }).flatMap(([name, value]) => (value === undefined ? [] : ["-H", `${name}: ${value}`]));
    const { stdout } = await run("curl", ["-s", "-i", ...sent, ...words, `${endpoint}${path}`]);
    const [head = "", body = ""] = stdout.split(/\r\n\r\n(.*)/s);
    const [, status] = /^HTTP\/1.1 (\d+)/.exec(head) ?? [];
    const [, code] = /^x-ms-error-code: (.*)$/im.exec(head) ?? [];
    return { answer: [status, code].join(" ").trim(), head, body };
  }

  const withCurl = (use: (built: Built) => Promise<void>) => () =>
    withBlobs(async (built) => {
      await built.grant();
      await allowHttp(built.arm);
      await use(built);
    });

  type Headers = Readonly<Record<string, string | undefined>>;
  const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` });
  const hours = (count: number) => new Date(Date.now() + count * 3_600_000);
  const invalid = "401 InvalidAuthenticationInfo";

  /** The token as one of another tenant. */
  function ofOthers(token: string): string {
    const [head, claims = "", signature] = token.split(".");
    const own = JSON.parse(Buffer.from(claims, "base64url").toString()) as object;
    const other = Buffer.from(JSON.stringify({ ...own, tid: "other" })).toString("base64url");
    return [head, other, signature].join(".");
  }

  it.each<[flaw: string, headersOf: (built: Built) => Headers, answer: string, detail?: string]>([
    ["no version", () => ({ "x-ms-version": undefined }), "403 AuthenticationFailed"],
    ["an early version", () => ({ "x-ms-version": "2015-02-21" }), "403 AuthenticationFailed"],
    [
      "a version that there is not",
      () => ({ "x-ms-version": "2024-11-05" }),
      "400 InvalidHeaderValue",
    ],
    ["no token", () => ({ authorization: undefined }), "401 NoAuthenticationInformation"],
    [
      "a key of the account",
      () => ({ authorization: "SharedKey zonedbackups:abc" }),
      "403 KeyBasedAuthenticationNotPermitted",
    ],
    ["what is no token", () => bearer("abc"), invalid],
    [
      "a token of another service",
      ({ token }) => bearer(token("https://vault.azure.net")),
      invalid,
      "Audience validation failed.",
    ],
    [
      "a token of another tenant",
      ({ token }) => bearer(ofOthers(token())),
      invalid,
      "Issuer validation failed.",
    ],
    [
      "an expired token",
      ({ token }) => bearer(token(undefined, hours(-25))),
      invalid,
      "is expired.",
    ],
    [
      "a token of tomorrow",
      ({ token }) => bearer(token(undefined, hours(24))),
      invalid,
      "not yet valid.",
    ],
  ])("refuses a request with %s", (_, headersOf, answer, detail = "") =>
    withCurl(async (built) => {
      const refused = await curl(built, [], "/etcd/one", headersOf(built));

      expect(refused.answer).toBe(answer);
      expect(refused.body).toMatch(`<Error><Code>${answer.slice(4)}</Code><Message>`);
      expect(refused.body).toContain(detail);
    })(),
  );

  const put = ["-X", "PUT"];
  const block = "/etcd/one?comp=block&blockid=QQ%3D%3D";
  const list = [...put, "-d", "<BlockList><Latest>QQ==</Latest></BlockList>"];

  it.each<[flaw: string, words: string[], path: string, answer: string]>([
    ["a container without a role", [], "/other/one", "403 AuthorizationPermissionMismatch"],
    ["a blob that is not there", [], "/etcd/one", "404 BlobNotFound"],
    ["one that is asked for in time", [], "/etcd/one?timeout=30", "404 BlobNotFound"],
    [
      "a signature by the account's key",
      [],
      "/etcd/one?sig=abc",
      "403 KeyBasedAuthenticationNotPermitted",
    ],
    [
      "a list of no blobs at a time",
      [],
      "/etcd?restype=container&comp=list&maxresults=0",
      "400 InvalidQueryParameterValue",
    ],
    [
      "a block that is larger than a block may be",
      [...put, "-H", `Content-Length: ${4000 * 1024 ** 2 + 1}`],
      block,
      "413 RequestBodyTooLarge",
    ],
    ["an account that is not there", ["--path-as-is"], "x/etcd/one", "404 ResourceNotFound"],
    [
      "a block without a name",
      [...put, "-d", "x"],
      "/etcd/one?comp=block",
      "400 InvalidQueryParameterValue",
    ],
    [
      "a block whose name is no base64",
      [...put, "-d", "x"],
      "/etcd/one?comp=block&blockid=A",
      "400 InvalidQueryParameterValue",
    ],
    [
      "a block whose name is of more than 64 bytes",
      [...put, "-d", "x"],
      `/etcd/one?comp=block&blockid=${encodeURIComponent(Buffer.alloc(65).toString("base64"))}`,
      "400 InvalidQueryParameterValue",
    ],
    [
      "a block of unknown length",
      [...put, "-d", "x", "-H", "Transfer-Encoding: chunked"],
      block,
      "411 MissingContentLengthHeader",
    ],
    [
      "a block list that is no XML",
      [...put, "-d", "<BlockList><Latest>QQ==</BlockList>"],
      "/etcd/one?comp=blocklist",
      "400 InvalidXmlDocument",
    ],
    [
      "metadata with a hyphen in its name",
      [...list, "-H", "x-ms-meta-a-b: c"],
      "/etcd/one?comp=blocklist",
      "400 InvalidMetadata",
    ],
  ])("refuses %s", (_, words, path, answer) =>
    withCurl(async (built) => {
      expect((await curl(built, words, path)).answer).toBe(answer);
    })(),
  );

  it(
    "takes a token that is for this account alone, and names in the answer to another where to get one",
    withCurl(async (built) => {
      const ask = (audience: string) =>
        curl(built, [], "/etcd/one", {
          ...bearer(built.token(audience)),
          "x-ms-client-request-id": "the-client's",
        });

      expect((await ask("https://zonedbackups.blob.core.windows.net")).answer).toBe(
        "404 BlobNotFound",
      );
      const { head } = await ask("https://vault.azure.net");
      expect(head).toMatch(/^x-ms-client-request-id: the-client's\r?$/im);
      expect(head).toMatch(
        /^www-authenticate: Bearer .*resource_id=https:\/\/storage\.azure\.com/im,
      );
    }),
  );

  it(
    "keeps nothing of an upload that breaks off",
    withCurl(async (built) => {
      const { port, token, upload, blockFiles } = built;
      await upload("one", "x");
      const socket = connect(port, "127.0.0.1");
      socket.write(
        "PUT /zonedbackups/etcd/one?comp=block&blockid=QQ%3D%3D HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-version: 2024-11-04\r\n" +
          `Authorization: Bearer ${token()}\r\nContent-Length: 100\r\n\r\nhalf`,
      );
      while (blockFiles().length < 2) await sleep(10);

      socket.destroy();
      while (blockFiles().length > 1) await sleep(10);

      expect((await curl(built, [], "/etcd/one")).body).toBe("x");
    }),
  );

  it.each([
    ["plain HTTP, unless the account allows it", {}, "400 AccountRequiresHttps"],
    [
      "everybody, where the account is closed to public networks",
      { enableHttpsTrafficOnly: false, publicNetworkAccess: "Disabled" },
      "403 AuthorizationFailure",
    ],
    [
      "everybody, where the account's rules admit nobody",
      { enableHttpsTrafficOnly: false, networkRuleSet: { defaultAction: "Deny" } },
      "403 AuthorizationFailure",
    ],
  ])("refuses %s", (_, change, answer) =>
    withBlobs(async (built) => {
      await built.grant();
      await built.arm.patch(storage(""), change);

      expect((await curl(built, [], "/etcd/one")).answer).toBe(answer);
    }),
  );

  it(
    "honours a role only when all of Azure knows it",
    withCurl(async (built) => {
      built.arm.durations.set({ factor: 1 });

      expect((await curl(built, [], "/etcd/one")).answer).toBe(
        "403 AuthorizationPermissionMismatch",
      );
    }),
  );

  it(
    "fails as it is told to",
    withCurl(async (built) => {
      const { faults } = built.arm;
      faults.add({
        method: "PUT",
        id: "containers/etcd/blobs/one",
        status: 507,
        code: "InsufficientStorage",
        retryAfter: 7,
      });
      faults.add({ method: "PUT", id: "blobs/two$", lost: "answer" });
      faults.add({ method: "GET", id: "containers/etcd$", lost: "request" });

      const refused = await curl(built, [...put, "-d", "x"], block);
      expect(refused.answer).toBe("507 InsufficientStorage");
      expect(refused.head).toMatch(/^retry-after: 7\r?$/im);
      await expect(
        curl(built, [...put, "-d", "x"], block.replace("one", "two")),
      ).rejects.toMatchObject({ code: 52 });
      expect((await curl(built, list, "/etcd/two?comp=blocklist")).answer).toBe("201");
      expect((await curl(built, [], "/etcd/two")).body).toBe("x");
      await built.upload("one", "x");
      await expect(curl(built, [], "/etcd?restype=container&comp=list")).rejects.toMatchObject({
        code: 52,
      });
    }),
  );
});

describe("official client", () => {
  interface Refusal {
    readonly statusCode: number;
    readonly code?: string;
    readonly details?: { readonly errorCode?: string };
  }

  /** Status and code of the refusal; the answer to HEAD has its code in a header. */
  const codeOf = (request: Promise<unknown>): Promise<string> =>
    request.then(
      () => "not refused",
      ({ statusCode, code, details }: Refusal) => `${statusCode} ${code ?? details?.errorCode}`,
    );

  it("replaces, and lists page by page", () =>
    withBlobs(async ({ client, grant, upload }) => {
      await grant();
      const container = client();
      for (const number of [3, 1, 2]) await upload(`a/${number}`, "x");
      await upload("b/<1> & 2", "x", { cluster: "abc" });
      const { etag } = await container.getBlobClient("b/<1> & 2").download();
      await upload("a/1", "longer & <other>");

      const pages: string[][] = [];
      const list = container.listBlobsFlat({ prefix: "a/" }).byPage({ maxPageSize: 2 });
      for await (const { segment } of list) pages.push(segment.blobItems.map(({ name }) => name));
      const found = await all(container.listBlobsFlat({ includeMetadata: true }));

      expect(pages).toEqual([["a/1", "a/2"], ["a/3"]]);
      expect(found.map(({ name }) => name)).toEqual(["a/1", "a/2", "a/3", "b/<1> & 2"]);
      expect(found[3]).toMatchObject({
        metadata: { cluster: "abc" },
        // Of the header's, without the quotation marks.
        properties: { etag: etag!.slice(1, -1) },
      });
      expect(found[0]!.properties).toMatchObject({ contentLength: 16, blobType: "BlockBlob" });
    }));

  it("commits the blocks that a list names, and forgets the others", () =>
    withBlobs(async ({ client, grant, download, blockFiles }) => {
      await grant();
      const blob = client().getBlockBlobClient("blocks");
      const [a, b, c] = ["AAAA", "BBBB", "CCCC"] as const;
      for (const id of [a, b, c]) await blob.stageBlock(id, id, 4);
      expect(await codeOf(blob.download())).toBe("404 BlobNotFound");

      await blob.commitBlockList([b, a, b]);

      expect((await download("blocks")).content.toString()).toBe("BBBBAAAABBBB");
      expect(blockFiles()).toHaveLength(2);
      expect(await codeOf(blob.commitBlockList([c]))).toBe("400 InvalidBlockList");
      await blob.stageBlock(a, "aaaa", 4);
      expect(await codeOf(blob.stageBlock("QUJDREVG", "x", 1))).toBe("400 InvalidBlobOrBlock");
      await blob.commitBlockList([a, b]);
      expect((await download("blocks")).content.toString()).toBe("aaaaBBBB");
    }));

  it("lets a principal in by a role at the container or above it, and by no other", () =>
    withBlobs(async ({ client, grant, upload }) => {
      const mismatch = "403 AuthorizationPermissionMismatch";
      expect(await codeOf(upload("one", "1"))).toBe(mismatch);
      expect(await codeOf(all(client().listBlobsFlat()))).toBe(mismatch);

      // Owners of an account have no right to what is in it.
      await grant(storage(""), roleDefinition("8e3af657-a8ff-443c-a75c-2fe8c4bcb635"));
      expect(await codeOf(upload("one", "1"))).toBe(mismatch);
      await grant();
      await upload("one", "1");
    }));

  it("lets a reader read, and nothing more", () =>
    withBlobs(async ({ grant, revoke, upload, download }) => {
      await grant(subscription);
      await upload("one", "1");
      await revoke(subscription);
      await grant(valid.container[0], roleDefinition("2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"));

      expect((await download("one")).content.toString()).toBe("1");
      expect(await codeOf(upload("one", "2"))).toBe("403 AuthorizationPermissionMismatch");
    }));

  it("lets a role of one's own do what its data actions name", () =>
    withBlobs(async ({ grant, arm, upload, download }) => {
      const blobs = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs";
      const role = roleDefinition("00000000-0000-4000-8000-000000000006");
      await arm.put(role, {
        roleName: "writes blobs",
        permissions: [{ actions: ["*"], dataActions: [`${blobs}/write`] }],
        assignableScopes: [subscription],
      });
      await grant(valid.container[0], role);

      await upload("one", "1");
      expect(await codeOf(download("one"))).toBe("403 AuthorizationPermissionMismatch");
    }));

  it("knows no container that is not there, and no blob of one that was deleted and made again", () =>
    withBlobs(async ({ client, grant, arm, upload }) => {
      await grant(storage(""));
      await upload("one", "1");

      await arm.delete(valid.container[0]);
      expect(await codeOf(all(client().listBlobsFlat()))).toBe("404 ContainerNotFound");
      expect(await codeOf(upload("one", "1"))).toBe("404 ContainerNotFound");
      await arm.put(...valid.container);
      expect(await all(client().listBlobsFlat())).toEqual([]);
    }));

  it("has 5,000 blobs on a page at most, however many are asked for", () => {
    const at = { endpoint: "https://ours.blob.core.windows.net/", container: "etcd" };
    const [created, modified] = ["2026-11-25T09:00:00Z", "2026-11-25T09:00:00Z"];
    const blobs = Array.from({ length: 5001 }, (_, index) => ({
      ...{ name: `${index}`.padStart(5, "0"), size: 1, etag: '"0x1"', created, modified },
      ...{ metadata: {}, blocks: [] },
    }));

    for (const query of ["", "maxresults=6000"]) {
      const page = listOf(blobs, new URLSearchParams(query), at);
      expect(page.match(/<Blob>/g)).toHaveLength(5000);
      const [, marker = ""] = /<NextMarker>(.+)<\/NextMarker>/.exec(page) ?? [];
      const rest = listOf(blobs, new URLSearchParams({ marker }), at);
      expect(rest.match(/<Name>\d+<\/Name>/g)).toEqual(["<Name>05000</Name>"]);
    }
  });
});
