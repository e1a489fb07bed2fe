import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { testFolder } from "../../../../../tests/support/test-folder";
import { lacking } from "../../../machines/qemu/image/base-image";

const folder = testFolder();

const own = ["registry.k8s.io/kube-proxy:v2", "registry.k8s.io/pause:3"];
const other = "registry.k8s.io/kube-proxy:v1";
const addOn = "ghcr.io/flannel-io/flannel:v7";

const images = { "2": own, "1": [other, own[1]!] };
mkdirSync(join(folder, "images"));
const manifests = [...own, other, addOn].map((name) => ({
  annotations: { "io.containerd.image.name": name },
}));
writeFileSync(join(folder, "images", "index.json"), JSON.stringify({ manifests }));

it.each([
  ["of other versions", false, [other]],
  ["of add-ons too where it is to pull them, as a machine of Ubuntu's image", true, [other, addOn]],
])("begins without images %s", (_, pullsAddOns, expected) => {
  expect(lacking({ folder, images }, "2", pullsAddOns)).toEqual(expected);
});
