import {
  cloudProviderImages,
  flannelImage,
  kuredImage,
  metricsServerImage,
  versions,
} from "../../../../components/versions";
import { partsOf } from "../../images/image-layout";
import { builtImage } from "../../images/built-images";
import { wantedImages } from "../../images/wanted-images";
import { current, nextPatch, previousMinor } from "../../../programs/releases";
import { built, output } from "../../../../tests/support/tools";

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
