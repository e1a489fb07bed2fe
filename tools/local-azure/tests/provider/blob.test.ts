import { wallClock } from "../../arm/durations";
import { BlobStore } from "../../blobs/store";
import { blobProvider } from "../../provider/blob";
import { allowHttp, withBlobs } from "../support/arm/blobs";
import { storage } from "../support/arm/valid-resources";

const { signal } = new AbortController();
const type = "azure-native:storage:Blob";
const about = {
  urn: `urn:pulumi:dev::zoned::${type}::keys`,
  type,
  signal,
  timeoutSeconds: 0,
  preview: false,
};
const inputs = (text: string) => ({
  ...{ resourceGroupName: "zoned", accountName: "zonedbackups", containerName: "public" },
  ...{ blobName: "openid/v1/jwks", contentType: "application/json" },
  source: { text },
});
const storeIn = (folder: string) => new BlobStore(`${folder}/blobs`, () => wallClock.now());

it("writes blobs that anybody may read by their names, where the container says so", () =>
  withBlobs(async ({ arm, endpoint, stateFolder }) => {
    const provider = blobProvider(arm, storeIn(stateFolder));
    const container = storage("/blobServices/default/containers/public");
    await allowHttp(arm);
    await arm.put(container, { publicAccess: "None" });
    const { id } = await provider.create({ ...about, inputs: inputs("{}") });
    const read = async (path = "/openid/v1/jwks") => {
      const { status, headers } = await fetch(`${endpoint}/public${path}`);
      return [status, headers.get("content-type")];
    };

    expect((await read())[0]).toBe(403);
    await arm.patch(storage(""), { allowBlobPublicAccess: true });
    await arm.put(container, { publicAccess: "Blob" });
    expect(await read()).toEqual([200, "application/json"]);
    expect((await read("?restype=container&comp=list"))[0]).toBe(403);

    await provider.delete({ ...about, id, state: {}, inputs: {} });
    expect((await read())[0]).toBe(404);
  }));

it("writes a blob anew when its content changes, and needs the account's key for it", () =>
  withBlobs(async ({ arm, stateFolder }) => {
    const provider = blobProvider(arm, storeIn(stateFolder));
    const difference = { ...about, id: "", state: {}, olds: inputs("a"), news: inputs("b") };
    expect(await provider.diff(difference)).toMatchObject({ deleteBeforeReplace: true });

    await arm.patch(storage(""), { allowSharedKeyAccess: false });
    await expect(provider.create({ ...about, inputs: inputs("{}") })).rejects.toThrow(
      "KeyBasedAuthenticationNotPermitted",
    );
  }));
