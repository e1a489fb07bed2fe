import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { manifests, minors, versions } from "../../components/versions";
import { checkout } from "../../tools/shared/checkout";

const files = [
  "index.ts",
  ...["", ".dev", ".prod", ".local"].map((stack) => `Pulumi${stack}.yaml`),
  ...["components", "cloud-init"].flatMap((folder) =>
    readdirSync(join(checkout, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(checkout.length + 1)),
  ),
].filter((file) => file !== join("components", "versions.ts"));

const known = [
  ...Object.values(versions).map((version) => version.replace(/^v/, "")),
  ...Object.values(manifests)
    .flat()
    .map(({ sha256 }) => sha256),
];

it("looks at the whole program", () => {
  expect(files).toEqual(
    expect.arrayContaining([
      "index.ts",
      "Pulumi.yaml",
      join("components", "kubeadm", "kubeadm.ts"),
      join("components", "add-ons", "cni.ts"),
      join("cloud-init", "first-boot.sh"),
    ]),
  );
});

it.each(files)("%s takes versions from versions.ts", (file) => {
  const text = readFileSync(join(checkout, file), "utf8");
  expect(known.filter((version) => text.includes(version))).toEqual([]);
  // Three numbers in a row are somebody's version (CNI's says how a file is read, one in an id is an example); an
  // address has four.
  const others = text
    .replaceAll(/(cniVersion|requiredPulumiVersion|\/versions\/).*/g, "")
    .match(/(?<![\d.])v?\d+\.\d+\.\d+(?!\d|\.\d)/g);
  expect(others ?? []).toEqual([]);
});

it("docs/versions.md is about the two minors of this release, and the one after them", () => {
  const page = readFileSync(join(checkout, "docs/versions.md"), "utf8");
  const [newer, older] = minors.map(({ minor }) => minor);
  const next = `1.${Number(newer!.split(".")[1]) + 1}`;

  expect(page).toContain(`clusters of Kubernetes ${newer}, and runs those of ${older} `);
  expect(page).toContain(`## What Kubernetes ${next} asks for`);
});
