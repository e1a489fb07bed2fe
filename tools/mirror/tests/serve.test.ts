import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { type MirrorServer, serveMirror } from "../serve/serve";
import { smallImage } from "./support/fixture";
import { testFolder } from "../../../tests/support/test-folder";

const mirror = testFolder();
const broken = testFolder();
let server: MirrorServer;

beforeAll(async () => {
  await smallImage(mirror, "registry.example/some/program:v1", "one");
  mkdirSync(join(mirror, "apt", "pool"), { recursive: true });
  mkdirSync(join(mirror, ".made"));
  writeFileSync(join(mirror, "apt", "pool", "a+b_1~2.deb"), "a package");
  writeFileSync(join(mirror, ".made", "lock"), "ours");
  server = await serveMirror(mirror, { address: "127.0.0.1", port: 0 });
});
afterAll(() => server.close());

const get = (path: string, init?: RequestInit) => fetch(`${server.url}${path}`, init);
const digest = (bytes: ArrayBuffer): string =>
  `sha256:${createHash("sha256").update(Buffer.from(bytes)).digest("hex")}`;

it("gives an image, part by part, under its name without the registry", async () => {
  expect((await get("/v2/")).status).toBe(200);
  const answer = await get("/v2/some/program/manifests/v1");
  const text = await answer.clone().arrayBuffer();
  const manifest = (await answer.json()) as {
    mediaType: string;
    config: { digest: string };
    layers: { digest: string }[];
  };

  expect(answer.headers.get("content-type")).toBe(manifest.mediaType);
  expect(answer.headers.get("docker-content-digest")).toBe(digest(text));
  for (const part of [manifest.config, ...manifest.layers]) {
    const blob = await get(`/v2/some/program/blobs/${part.digest}`);
    expect(digest(await blob.arrayBuffer())).toBe(part.digest);
  }
  const again = await get(`/v2/some/program/manifests/${digest(text)}`);
  expect(digest(await again.arrayBuffer())).toBe(digest(text));
});

it("answers a question for the size alone without the content", async () => {
  const answer = await get("/v2/some/program/manifests/v1", { method: "HEAD" });

  expect(Number(answer.headers.get("content-length"))).toBeGreaterThan(100);
  expect(await answer.text()).toBe("");
});

it.each([
  "/v2/other/program/manifests/v1",
  "/v2/some/program/manifests/v2",
  `/v2/some/program/blobs/sha256:${"0".repeat(64)}`,
])("answers 404 to %s, so that machines ask upstream", async (path) => {
  expect((await get(path)).status).toBe(404);
});

it.each(["manifests/canal.yaml", "cri-dockerd/cri-dockerd-1.amd64.tgz.sha256"])(
  "gives %s as it lies there",
  async (path) => {
    mkdirSync(join(mirror, dirname(path)), { recursive: true });
    writeFileSync(join(mirror, path), path);

    const answer = await get(`/${path}`);

    expect([answer.status, await answer.text()]).toEqual([200, path]);
  },
);

it("finds a package whose name apt has escaped", async () => {
  expect(await (await get("/apt/pool/a%2bb_1%7e2.deb")).text()).toBe("a package");
});

it.each([
  "/v2/a/blobs/sha256:..%2f..%2findex.json",
  "/.made/lock",
  "/apt/..%2f.made%2flock",
  "/apt/%2e%2e/.made/lock",
  "/apt",
  "/",
  "/%zz",
])("gives nothing but what machines fetch: %s", async (path) => {
  expect((await get(path)).status).toBeGreaterThanOrEqual(400);
});

it("names no address where it is served at all of them", async () => {
  const everywhere = await serveMirror(mirror, { address: "0.0.0.0", port: 0 });
  await everywhere.close();

  expect(everywhere.url).toMatch(/^http:\/\/ADDRESS:\d+$/);
});

it("takes nothing in", async () => {
  expect((await get("/v2/some/program/blobs/uploads/", { method: "POST" })).status).toBe(405);
});

it("says which address cannot be served", async () => {
  const { port } = new URL(server.url);

  await expect(serveMirror(mirror, { address: "127.0.0.1", port: Number(port) })).rejects.toThrow(
    `127.0.0.1 port ${port} cannot be served`,
  );
});

it.each([
  ["has a null byte", "/apt/x%00y"],
  ["is too long for a file", `/apt/${"a".repeat(300)}`],
  ["goes below a file", "/apt/pool/a+b_1~2.deb/x"],
  ["is that of an image with a null byte", "/v2/some%00/manifests/v1"],
])("answers 404 to a path that %s, and goes on", async (_, path) => {
  expect((await get(path)).status).toBe(404);
  expect((await get("/v2/")).status).toBe(200);
});

it("says what is wrong with its own index, and goes on", async () => {
  mkdirSync(join(broken, "images"));
  writeFileSync(join(broken, "images", "index.json"), "{");
  const other = await serveMirror(broken, { address: "127.0.0.1", port: 0 });

  const answer = await fetch(`${other.url}/v2/some/program/manifests/v1`);

  expect(answer.status).toBe(500);
  expect(await answer.text()).toContain("JSON");
  expect((await fetch(`${other.url}/v2/`)).status).toBe(200);
  await other.close();
});
