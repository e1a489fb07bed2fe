import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { testFolder } from "../../../tests/support/test-folder";
import { run } from "../../shared/run";
import { packLayer } from "../images/build-image";
import { ImageLayout, partsOf } from "../images/image-layout";
import { type ImageOptions, provideImages } from "../images/provide-images";
import { type WantedImage, wantedImages } from "../images/wanted-images";
import { packDeb } from "../packages/kubernetes-packages";
import { answering, smallImage } from "./support/fixture";
import {
  cloudProviderImages,
  flannelImage,
  kuredImage,
  metricsServerImage,
  versions,
} from "../../../components/versions";
import { builtImage } from "../images/built-images";
import { current, nextPatch, previousMinor } from "../../programs/releases";
import { built, output } from "../../../tests/support/tools";

const folder = testFolder();
const upstream = testFolder();
const { signal } = new AbortController();
const pause: WantedImage = { image: "registry.k8s.io/pause:3.10.2", part: "Kubernetes" };

const programs: string[] = [];

const layout = new ImageLayout(join(folder, "images"));

const layoutIn = (mirror: string): ImageLayout => new ImageLayout(join(folder, mirror, "images"));

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

  it("is refused when a part of it is not what its manifest says", async () => {
    const image = "registry.k8s.io/forged:v1";
    await smallImage(upstream, image, "forged");
    const forged = new ImageLayout(join(upstream, "images"));
    forged.keepOnly(new Set([image]));
    writeFileSync(forged.blobPath(forged.manifest(forged.find(image)!).layers[0]!.digest), "other");

    const providing = provide(true, [pause, { image, part: "tests" }]);

    await expect(providing).rejects.toThrow("is damaged: a part is");
    expect(readdirSync(join(folder, "drafts"))).toEqual([]);
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

const name = "registry.example/program:v1";

it("makes the same image of the same content, byte for byte, at any time", async () => {
  await smallImage(join(folder, "one"), name, "same");
  // Archives know seconds.
  await sleep(1100);
  await smallImage(join(folder, "two"), name, "same");
  await smallImage(join(folder, "three"), name, "other");

  const digest = (mirror: string) => layoutIn(mirror).find(name)?.digest;
  expect(digest("one")).toBe(digest("two"));
  expect(digest("one")).not.toBe(digest("three"));
});

it("gives importers the image's full name", async () => {
  await smallImage(join(folder, "named"), name, "named");
  const index = readFileSync(join(folder, "named", "images", "index.json"), "utf8");

  expect(index).toContain(`"io.containerd.image.name":"${name}"`);
});

it("forgets an image with what was its alone, and keeps what others have too", async () => {
  const mirror = join(folder, "shared");
  await smallImage(mirror, "registry.example/kept:v1", "shared");
  await smallImage(mirror, "registry.example/also:v1", "shared");
  await smallImage(mirror, "registry.example/gone:v1", "alone");
  const layout = layoutIn("shared");

  layout.keepOnly(new Set(["registry.example/kept:v1"]));

  expect(layout.images).toHaveLength(1);
  expect(layout.find("registry.example/kept:v1")).toBeDefined();
  expect(readdirSync(join(layout.folder, "blobs", "sha256"))).toHaveLength(3);
});

it("knows an image of which a part is missing or cut off", async () => {
  await smallImage(join(folder, "damaged"), name, "damaged");
  const layout = layoutIn("damaged");
  const [layer] = layout.manifest(layout.find(name)!).layers;

  writeFileSync(layout.blobPath(layer!.digest), "cut");
  expect(layout.find(name)).toBeUndefined();
  rmSync(layout.blobPath(layer!.digest));
  expect(layout.find(name)).toBeUndefined();
});

it("gives busybox's layer its commands, and folders that anybody may write in", async () => {
  const program = join(folder, "program");
  writeFileSync(program, "#!/bin/sh\nprintf 'busybox\\nls\\n'\n", { mode: 0o755 });
  const file = join(folder, "busybox.deb");
  const draft = join(folder, "draft");
  mkdirSync(draft);
  const recipe = { name: "busybox-static", version: "1", depends: [], description: "a stand-in" };
  await packDeb(
    { ...recipe, binaries: { "/usr/bin/busybox": "" } },
    file,
    draft,
    async () => program,
    signal,
  );
  const debian = { name: recipe.name, version: recipe.version, fields: new Map(), file };
  const layer = join(folder, "layer.tar");

  await packLayer({ kind: "busybox", folders: ["tmp"] }, join(folder, "tree"), layer, {
    pathOf: async () => program,
    debianPackages: async () => [debian],
    signal,
  });

  const list = await run(["tar", "--list", "--verbose", "--file", layer], { signal });
  expect(list).toMatch(/^drwxrwxrwt .* \.\/tmp\/$/m);
  expect(list).toMatch(/ \.\/usr\/bin\/ls -> busybox$/m);
});

describe("the images that are wanted", () => {
  it("can make every image that the real kubeadm asks for, in the version that it asks for", () => {
    for (const { version } of [current, nextPatch]) {
      const flags = ["--kubernetes-version", `v${version}`];
      const list = output(built("kubeadm"), ["config", "images", "list", ...flags]);

      const images = list.trim().split("\n");
      expect(images.length).toBeGreaterThanOrEqual(7);
      for (const image of images) expect(builtImage(image)).toBeDefined();
    }
  });

  it("makes each version's image of that version's programs", () => {
    for (const { version } of [nextPatch, previousMinor]) {
      const image = builtImage(`registry.k8s.io/kube-scheduler:v${version}`)!;

      expect(image.recipe.layers).toContainEqual({
        kind: "binaries",
        binaries: { "/usr/local/bin/kube-scheduler": `kube-scheduler@${version}` },
      });
    }
  });

  it("says that the next patch is made of the sources of this one", () => {
    expect(builtImage(`registry.k8s.io/kube-proxy:v${nextPatch.version}`)!.from).toBe(
      `Go module k8s.io/kubernetes v${versions.kubernetes}`,
    );
  });

  it("gives the images of upstream's tests another shell than busybox's, whose nc they would get", () => {
    for (const image of ["agnhost:2.66.1", "glibc-dns-testing:2.1.1"]) {
      const layers = builtImage(`registry.k8s.io/e2e-test-images/${image}`)!.recipe.layers;
      const above = layers.slice(layers.findIndex(({ kind }) => kind === "busybox") + 1);

      expect(above).toContainEqual(
        expect.objectContaining({
          packages: expect.arrayContaining(["dash", "netcat-openbsd"]),
          links: { "/usr/bin/nc": "nc.openbsd" },
        }),
      );
    }
  });

  it("gives kube-proxy's image the shell that upstream's has, which takes old rules away", () => {
    const image = `registry.k8s.io/kube-proxy:v${versions.kubernetes}`;

    expect(builtImage(image)?.recipe.layers).toContainEqual(
      expect.objectContaining({ kind: "busybox" }),
    );
  });

  it("makes no cloud provider of another minor", () => {
    const images = Object.values(cloudProviderImages(previousMinor.version));

    expect(images.map(builtImage)).toEqual([undefined, undefined]);
  });

  it("does not call an image by a version that it would not be made of", () => {
    expect(() => builtImage("registry.k8s.io/kube-proxy:v1.2.3")).toThrow(
      /kube-proxy:v1\.2\.3 is wanted.*go\.mod/,
    );
  });

  it.each([
    ["flannel", [flannelImage], true],
    ["cloud provider", Object.values(cloudProviderImages(versions.kubernetes)), true],
    ["metrics-server", [metricsServerImage], true],
    ["reboots", [kuredImage], false],
    ["tests", [expect.stringContaining("/busybox:"), expect.stringContaining("/agnhost:")], true],
  ])("wants the images of %s: %j; whether it can build them: %s", (part, images, canBuild) => {
    const wanted = wantedImages([versions.kubernetes], [], []).filter((one) => one.part === part);

    expect(wanted.map(({ image }) => image)).toEqual(expect.arrayContaining(images));
    for (const { image } of wanted) expect(builtImage(image) !== undefined).toBe(canBuild);
  });

  it("wants what upstream's manifests name, each once", () => {
    const text =
      'spec:\n  image: quay.io/a/b:v1\n  - image: "quay.io/a/c:v2"\n  image: quay.io/a/b:v1\n';

    const wanted = wantedImages([], [], [{ part: "Canal", text }]).filter(
      ({ part }) => part === "Canal",
    );
    expect(wanted.map(({ image }) => image)).toEqual(["quay.io/a/b:v1", "quay.io/a/c:v2"]);
  });

  it("takes a name with a port and folders apart", () => {
    expect(partsOf("registry.example:5000/a/b/c:v1")).toEqual({
      registry: "registry.example:5000",
      name: "a/b/c",
      tag: "v1",
    });
    expect(() => partsOf("busybox")).toThrow("busybox is no full name of an image");
  });
});
