import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";

import { withBlobs } from "../support/arm/blobs";
import { all } from "../support/arm/official-sdks";
import { roleDefinition, storage, subscription, valid } from "../support/arm/valid-resources";

const mebibyte = 1024 ** 2;
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

it("keeps what is uploaded in blocks, with its metadata, and gives back any range of it", () =>
  withBlobs(async ({ client, grant, blockFiles }) => {
    await grant();
    const content = randomBytes(5 * mebibyte + 17);
    const blob = client().getBlockBlobClient("zoned/20261124T220000Z-42.db");

    const uploaded = await blob.uploadStream(Readable.from([content]), mebibyte, 3, {
      metadata: { cluster: "abc", machine: "cp-1" },
      blobHTTPHeaders: { blobContentType: "application/x-etcd" },
    });
    const properties = await blob.getProperties();
    const part = await blob.downloadToBuffer(mebibyte - 5, 10);

    expect(properties).toMatchObject({
      blobType: "BlockBlob",
      contentLength: content.length,
      contentType: "application/x-etcd",
      etag: uploaded.etag,
      metadata: { cluster: "abc", machine: "cp-1" },
    });
    expect(part).toEqual(content.subarray(mebibyte - 5, mebibyte + 5));
    expect((await blob.downloadToBuffer()).equals(content)).toBe(true);
    expect(blockFiles()).toHaveLength(6);
  }));

it("replaces, lists page by page, and deletes", () =>
  withBlobs(async ({ client, grant }) => {
    await grant();
    const container = client();
    const upload = (name: string, text: string, metadata = {}) =>
      container.getBlockBlobClient(name).upload(text, text.length, { metadata });
    for (const number of [3, 1, 2]) await upload(`a/${number}`, "x");
    const other = await upload("b/<1> & 2", "x", { cluster: "abc" });
    await upload("a/1", "longer & <other>");

    const pages: string[][] = [];
    const list = container.listBlobsFlat({ prefix: "a/" }).byPage({ maxPageSize: 2 });
    for await (const { segment } of list) pages.push(segment.blobItems.map(({ name }) => name));
    await container.getBlockBlobClient("a/2").delete();
    const left = await all(container.listBlobsFlat({ includeMetadata: true }));

    expect(pages).toEqual([["a/1", "a/2"], ["a/3"]]);
    expect(left.map(({ name }) => name)).toEqual(["a/1", "a/3", "b/<1> & 2"]);
    expect(left[2]).toMatchObject({
      metadata: { cluster: "abc" },
      // Of the header's, without the quotation marks.
      properties: { etag: other.etag!.slice(1, -1) },
    });
    expect(left[0]!.properties).toMatchObject({ contentLength: 16, blobType: "BlockBlob" });
    expect(await codeOf(container.getBlockBlobClient("a/2").delete())).toBe("404 BlobNotFound");
    expect(await codeOf(container.getBlockBlobClient("a/2").getProperties())).toBe(
      "404 BlobNotFound",
    );
  }));

it("commits the blocks that a list names, and forgets the others", () =>
  withBlobs(async ({ client, grant, blockFiles }) => {
    await grant();
    const blob = client().getBlockBlobClient("blocks");
    const [a, b, c] = ["AAAA", "BBBB", "CCCC"] as const;
    for (const id of [a, b, c]) await blob.stageBlock(id, id, 4);
    expect(await codeOf(blob.getProperties())).toBe("404 BlobNotFound");

    await blob.commitBlockList([b, a, b]);

    expect((await blob.downloadToBuffer()).toString()).toBe("BBBBAAAABBBB");
    expect(blockFiles()).toHaveLength(2);
    expect(await codeOf(blob.commitBlockList([c]))).toBe("400 InvalidBlockList");
    await blob.stageBlock(a, "aaaa", 4);
    expect(await codeOf(blob.stageBlock("QUJDREVG", "x", 1))).toBe("400 InvalidBlobOrBlock");
    await blob.commitBlockList([a, b]);
    expect((await blob.downloadToBuffer()).toString()).toBe("aaaaBBBB");
  }));

it("honours conditions by etag", () =>
  withBlobs(async ({ client, grant }) => {
    await grant();
    const blob = client().getBlockBlobClient("one");
    const { etag } = await blob.upload("1", 1);
    const ifNew = { conditions: { ifNoneMatch: "*" } };
    const ifSame = { conditions: { ifMatch: etag! } };

    expect(await codeOf(blob.upload("2", 1, ifNew))).toBe("409 BlobAlreadyExists");
    await blob.upload("2", 1, ifSame);
    expect(await codeOf(blob.upload("3", 1, ifSame))).toBe("412 ConditionNotMet");
    expect(await codeOf(blob.delete(ifSame))).toBe("412 ConditionNotMet");
    const ifOther = { conditions: { ifNoneMatch: (await blob.getProperties()).etag! } };
    expect(await codeOf(blob.delete(ifOther))).toBe("412 ConditionNotMet");
    expect((await blob.downloadToBuffer()).toString()).toBe("2");
  }));

it("lets a principal in by a role at the container or above it, and by no other", () =>
  withBlobs(async ({ client, grant }) => {
    const mismatch = "403 AuthorizationPermissionMismatch";
    const blob = client().getBlockBlobClient("one");
    expect(await codeOf(blob.upload("1", 1))).toBe(mismatch);
    expect(await codeOf(all(client().listBlobsFlat()))).toBe(mismatch);

    // Owners of an account have no right to what is in it.
    await grant(storage(""), roleDefinition("8e3af657-a8ff-443c-a75c-2fe8c4bcb635"));
    expect(await codeOf(blob.upload("1", 1))).toBe(mismatch);
    await grant();
    await blob.upload("1", 1);
  }));

it.each([
  ["the account", storage("")],
  ["the subscription", subscription],
])("takes a role at %s", (_, scope) =>
  withBlobs(async ({ client, grant }) => {
    await grant(scope);

    await client().getBlockBlobClient("one").upload("1", 1);
  }),
);

it("lets a reader read, and nothing more", () =>
  withBlobs(async ({ client, grant, revoke }) => {
    await grant(storage(""));
    const blob = client().getBlockBlobClient("one");
    await blob.upload("1", 1);
    await revoke(storage(""));
    await grant(valid.container[0], roleDefinition("2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"));

    expect((await blob.downloadToBuffer()).toString()).toBe("1");
    expect(await codeOf(blob.delete())).toBe("403 AuthorizationPermissionMismatch");
  }));

it("lets a role of one's own do what its data actions name", () =>
  withBlobs(async ({ client, grant, arm }) => {
    const blobs = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs";
    const role = roleDefinition("00000000-0000-4000-8000-000000000006");
    await arm.put(role, {
      roleName: "writes blobs",
      permissions: [{ actions: ["*"], dataActions: [`${blobs}/write`] }],
      assignableScopes: [subscription],
    });
    await grant(valid.container[0], role);
    const blob = client().getBlockBlobClient("one");

    await blob.upload("1", 1);
    expect(await codeOf(blob.downloadToBuffer())).toBe("403 AuthorizationPermissionMismatch");
    expect(await codeOf(blob.delete())).toBe("403 AuthorizationPermissionMismatch");
  }));

it("refuses a token for something else than storage", () =>
  withBlobs(async ({ client, grant, token }) => {
    await grant();
    const wrong = client({
      getToken: async () => ({
        token: token("https://management.azure.com/"),
        expiresOnTimestamp: Date.now() + 3_600_000,
      }),
    });

    expect(await codeOf(wrong.getBlockBlobClient("one").upload("1", 1))).toBe(
      "401 InvalidAuthenticationInfo",
    );
  }));

it("knows no container that is not there, and no blob of one that was deleted and made again", () =>
  withBlobs(async ({ client, grant, arm }) => {
    await grant(storage(""));
    await client().getBlockBlobClient("one").upload("1", 1);

    await arm.delete(valid.container[0]);
    expect(await codeOf(all(client().listBlobsFlat()))).toBe("404 ContainerNotFound");
    expect(await codeOf(client().getBlockBlobClient("one").upload("1", 1))).toBe(
      "404 ContainerNotFound",
    );
    await arm.put(...valid.container);
    expect(await all(client().listBlobsFlat())).toEqual([]);
  }));

it("keeps blobs when the local Azure starts again", async () => {
  const folder = await withBlobs(async ({ client, grant, stateFolder }) => {
    await grant();
    await client().getBlockBlobClient("one").upload("1", 1);
    return stateFolder;
  });

  await withBlobs(async ({ client, grant }) => {
    await grant();
    expect((await client().getBlockBlobClient("one").downloadToBuffer()).toString()).toBe("1");
  }, folder);
});
