import { execFileSync, spawnSync } from "node:child_process";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

import { serve } from "../../../tests/support/listen";
import { testFolder } from "../../../tests/support/test-folder";
import { type Descriptor, ImageLayout, mediaTypes } from "../../mirror/images/image-layout";
import { type MirrorServer, serveMirror } from "../../mirror/serve/serve";
import { UserError } from "../../shared/user-error";
import { downloadFromImage, NoAnswer, save, unpack } from "../downloads";

describe("a downloaded program", () => {
  const folder = testFolder();
  let url: string;
  beforeAll(async () => {
    url = `${await serve((_, response) => response.end("a program"))}/program`;
  });

  const step = { update: () => undefined, done: () => undefined };
  const never = new AbortController().signal;

  /** A disk that is full, as Linux has one for tests. */
  const full = "/dev/full";

  it("says of a full disk that it is full, not that the source does not answer", async () => {
    const saving = save(url, full, step, never);

    await expect(saving).rejects.toThrow(`${full} cannot be written: the disk is full; make room`);
    await expect(saving).rejects.not.toBeInstanceOf(NoAnswer);
  });

  it("says so of an archive that is unpacked", async () => {
    writeFileSync(join(folder, "program"), "a program");
    const archive = join(folder, "archive.tar");
    spawnSync("tar", ["-cf", archive, "-C", folder, "program"]);

    await expect(unpack(archive, "program", full)).rejects.toThrow(
      `${full} cannot be written: the disk is full`,
    );
  });

  it("says of a source that is not there that it does not answer", async () => {
    const file = join(folder, "saved");

    await expect(save("http://127.0.0.1:1/program", file, step, never)).rejects.toThrow(NoAnswer);
    await expect(save(url, file, step, never)).resolves.toMatch(/^[0-9a-f]{64}$/);
  });
});

describe("programs out of images", () => {
  const name = "csi-attacher";
  const says = (what: string): string => `#!/bin/sh\necho ${what}\n`;

  let folder: string;
  let layout: ImageLayout;
  let registry: MirrorServer;
  beforeEach(async () => {
    folder = testFolder();
    layout = new ImageLayout(join(folder, "images"));
    mkdirSync(join(folder, "got"));
    registry = await serveMirror(folder, { address: "127.0.0.1", port: 0 });
  });
  afterEach(async () => {
    await registry.close();
  });

  /** A compressed layer of these programs by path; what begins with -> is a link. */
  async function layerOf(programs: Readonly<Record<string, string>>): Promise<Descriptor> {
    const tree = mkdtempSync(join(folder, "tree-"));
    for (const [path, content] of Object.entries(programs)) {
      mkdirSync(dirname(join(tree, path)), { recursive: true });
      if (content.startsWith("->")) symlinkSync(content.slice(2), join(tree, path));
      else writeFileSync(join(tree, path), content, { mode: 0o755 });
    }
    const archive = join(folder, "layer.tar.gz");
    execFileSync("tar", ["-czf", archive, "-C", tree, "."]);
    return layout.take(`${mediaTypes.layer}+gzip`, archive);
  }

  /** Publishes an image of these layers for each architecture; returns its index. */
  function publish(images: Readonly<Record<string, readonly Descriptor[]>>): Descriptor {
    const manifests = Object.entries(images).map(([architecture, layers]) => {
      const config = layout.add(mediaTypes.config, JSON.stringify({ architecture }));
      const content = JSON.stringify({ mediaType: mediaTypes.manifest, config, layers });
      const manifest = layout.add(mediaTypes.manifest, content);
      layout.name(`example.org/${name}:${architecture}`, manifest, "a test");
      return { ...manifest, platform: { os: "linux", architecture } };
    });
    const index = layout.add(mediaTypes.index, JSON.stringify({ manifests }));
    layout.name(`example.org/${name}:v1.0.0`, index, "a test");
    return index;
  }

  const download = (reference = "v1.0.0"): Promise<void> =>
    downloadFromImage(
      name,
      { repository: `${registry.url}/v2/${name}`, reference },
      join(folder, "got"),
      { update: () => undefined, done: () => undefined },
      new AbortController().signal,
    );

  const got = (): string[] => readdirSync(join(folder, "got"));
  const run = (): string => execFileSync(join(folder, "got", name), { encoding: "utf8" });

  it("takes a controller out of its image for this processor, by tag or by digest", async () => {
    const index = publish({
      arm64: [await layerOf({ [name]: says("arm64") })],
      amd64: [await layerOf({ [name]: says("amd64") })],
    });

    for (const reference of ["v1.0.0", index.digest]) {
      await download(reference);

      expect(got()).toEqual([name]);
      expect(run()).toBe("amd64\n");
      rmSync(join(folder, "got", name));
    }
  });

  it("takes the file of the last layer that has it, wherever in it, and no link to it", async () => {
    publish({
      amd64: [
        await layerOf({ [`usr/bin/${name}`]: says("first") }),
        await layerOf({ [`usr/bin/${name}`]: says("last") }),
        await layerOf({ [name]: `->/usr/bin/${name}`, [`usr/bin/other-${name}`]: says("other") }),
      ],
    });

    await download();

    expect(run()).toBe("last\n");
  });

  it("refuses a layer that is not what its digest says, with both, and leaves nothing", async () => {
    const layer = await layerOf({ [name]: says("amd64") });
    publish({ amd64: [layer] });
    appendFileSync(layout.blobPath(layer.digest), "more");

    const downloading = download();

    await expect(downloading).rejects.toThrow(UserError);
    await expect(downloading).rejects.toThrow(
      RegExp(`${layer.digest} is not .* [0-9a-f]{64}, expected ${layer.digest.slice(7)}; `),
    );
    expect(got()).toEqual([]);
  });

  it.each([
    ["its pinned digest", ({ digest }: Descriptor) => digest],
    ["the registry's digest of its tag", () => "v1.0.0"],
  ])("refuses an image that is not what %s says", async (_, referenceOf) => {
    const index = publish({ amd64: [await layerOf({ [name]: says("amd64") })] });
    appendFileSync(layout.blobPath(index.digest), " ");

    await expect(download(referenceOf(index))).rejects.toThrow(UserError);
  });

  const unusable: readonly [string, () => Promise<unknown>, string][] = [
    ["is for other processors", async () => publish({ arm64: [] }), "none for linux/amd64"],
    [
      "has no such program",
      async () => publish({ amd64: [] }),
      `no layer of v1.0.0 has a file ${name}`,
    ],
    [
      "has one that does not run here",
      async () => publish({ amd64: [await layerOf({ [name]: "#!/lib64/another-loader.so\n" })] }),
      `${name} of its image does not run here`,
    ],
    ["is not there", async () => undefined, "/manifests/v1.0.0: answered 404"],
  ];

  it.each(unusable)("leaves it to a build where the image %s", async (_, prepare, reason) => {
    await prepare();

    const downloading = download();

    await expect(downloading).rejects.toThrow(NoAnswer);
    await expect(downloading).rejects.toThrow(reason);
    expect(got()).toEqual([]);
  });
});
