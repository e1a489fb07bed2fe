import { readFileSync } from "node:fs";
import { join } from "node:path";

import { versions } from "../../../../components/versions";
import {
  fromKubernetes,
  kubernetesPackages,
} from "../../../../mirror/packages/kubernetes-packages";
import { distributionPackages } from "../../../../mirror/packages/packages";
import { nextPatch } from "../../../../programs/releases";
import { checkout } from "../../../../shared/checkout";

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
  const own = kubernetesPackages([versions.kubernetes]).map(({ name }) => name);
  expect(firstBoot).toContain("apt_install {kubelet,kubeadm,kubectl}=");
  expect(firstBoot).toContain("tools=(cri-tools)");
  const wanted = ["kubelet", "kubeadm", "kubectl", "cri-tools"];
  expect(own).toEqual(expect.arrayContaining(wanted));
  expect(fromKubernetes(versions.kubernetes).map((one) => one.split("=")[0])).toEqual(wanted);
});

it("has each version's packages beside the others', made of that version's programs", () => {
  const all = kubernetesPackages([versions.kubernetes, nextPatch.version]);

  const kubelets = all.filter(({ name }) => name === "kubelet").map(({ binaries }) => binaries);
  expect(kubelets).toEqual([
    { "/usr/bin/kubelet": "kubelet" },
    { "/usr/bin/kubelet": `kubelet@${nextPatch.version}` },
  ]);
  expect(all.filter(({ name }) => name === "kubernetes-cni")).toHaveLength(1);
});

it("lets kubeadm be newer than the kubelet beside it, as an upgrade needs it", () => {
  const kubeadm = kubernetesPackages([nextPatch.version]).find(({ name }) => name === "kubeadm")!;

  expect(kubeadm.depends).toEqual([]);
});
