import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { ImageLayout } from "../../images/image-layout";
import { type ImageOptions, provideImages } from "../../images/provide-images";
import type { WantedImage } from "../../images/wanted-images";
import { answering, smallImage, testFolder } from "../support/fixture";

const folder = testFolder();
const upstream = testFolder();
const { signal } = new AbortController();
const pause: WantedImage = { image: "registry.k8s.io/pause:3.10.2", part: "Kubernetes" };

const programs: string[] = [];

const layout = new ImageLayout(join(folder, "images"));

function options(official: boolean): ImageOptions {
  const drafts = join(folder, "drafts");
  mkdirSync(drafts, { recursive: true });
  return {
    layout,
    sources: answering(official ? /./ : /^nowhere$/),
    drafts,
    pathOf: async (binary) => {
      programs.push(binary);
      const program = join(folder, binary);
      const pull = `for last; do :; done\ncp -R '${join(upstream, "images")}/.' "$last"\n`;
      writeFileSync(program, `#!/bin/sh\n${pull}`);
      chmodSync(program, 0o755);
      return program;
    },
    debianPackages: async () => [],
    signal,
    onImage: () => undefined,
  };
}

const provide = async (official: boolean, wanted = [pause]) => {
  programs.length = 0;
  return provideImages(wanted, options(official));
};

beforeAll(() => smallImage(upstream, pause.image, "upstream's own"));

// Each goes on from where the one before it ended.
describe("an image", () => {
  it("is built where its registry does not answer, and says of what", async () => {
    const { items } = await provide(false);

    expect(items).toEqual([{ what: pause.image, from: expect.stringMatching(/^built from /) }]);
    expect(programs).toEqual(["pause"]);
  });

  it("is not built again while nothing of it has changed", async () => {
    await provide(false);

    expect(programs).toEqual([]);
  });

  it("is built again when a part of it is gone", async () => {
    const [layer] = layout.manifest(layout.find(pause.image)!).layers;
    writeFileSync(layout.blobPath(layer!.digest), "");

    await provide(false);

    expect(programs).toEqual(["pause"]);
    expect(layout.find(pause.image)).toBeDefined();
  });

  it("is built again when it was built from something else", async () => {
    layout.name(pause.image, layout.find(pause.image)!, "built from older sources", "another");

    const { items } = await provide(false);

    expect(programs).toEqual(["pause"]);
    expect(items[0]!.from).not.toContain("older");
  });

  it("is upstream's own as soon as its registry answers", async () => {
    const { items } = await provide(true);

    expect(items).toEqual([{ what: pause.image, from: "fetched from registry.k8s.io" }]);
    expect(programs).toEqual(["crane"]);
  });

  it("is fetched once", async () => {
    await provide(true);

    expect(programs).toEqual([]);
  });

  it("stays upstream's when the registry is gone again", async () => {
    const { items } = await provide(false);

    expect(items[0]!.from).toBe("fetched from registry.k8s.io");
    expect(programs).toEqual([]);
  });

  it("is named with what makes a stack without it, when it can be had neither way", async () => {
    const calico: WantedImage = { image: "quay.io/calico/node:v3.32.1", part: "Canal" };

    const { items, missing } = await provide(false, [pause, calico]);

    expect(items.map(({ what }) => what)).toEqual([pause.image]);
    expect(missing).toEqual([
      {
        what: "Canal (node)",
        why: "quay.io does not answer, and there is no way to build it",
        without: "pulumi config set cni flannel",
      },
    ]);
  });
});
