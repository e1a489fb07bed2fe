import { readFileSync } from "node:fs";
import { join } from "node:path";

import { kubernetesPackages } from "../../../mirror/kubernetes-packages";
import { distributionPackages } from "../../../mirror/packages";
import { checkout } from "../../../shared/checkout";

const firstBoot = readFileSync(join(checkout, "cloud-init/first-boot.sh"), "utf8");

it("has the packages that the first boot names, and no other", () => {
  const installs = [...firstBoot.matchAll(/^\s+apt_install ([^|\n]*)/gm)].map(
    ([, words]) => words!,
  );
  const lists = [...firstBoot.matchAll(/packages\+?=\(([^)]*)\)/g)].map(([, words]) => words!);
  const literal = [...installs, ...lists]
    .flatMap((words) => words.split(" "))
    .filter((word) => /^[a-z][a-z0-9.+-]+$/.test(word) && word !== "docker-cli");

  expect([...distributionPackages].sort()).toEqual(literal.sort());
  const own = kubernetesPackages.map(({ name }) => name);
  expect(firstBoot).toContain("apt_install {kubelet,kubeadm,kubectl}=");
  expect(own).toEqual(expect.arrayContaining(["kubelet", "kubeadm", "kubectl"]));
});
