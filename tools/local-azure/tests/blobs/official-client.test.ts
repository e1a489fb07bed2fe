import { listOf } from "../../blobs/blob-service";
import { withBlobs } from "../support/arm/blobs";
import { all } from "../support/arm/clients";
import { roleDefinition, storage, subscription, valid } from "../support/arm/valid-resources";

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
