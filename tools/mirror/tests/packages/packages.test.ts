import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { versions } from "../../../../components/versions";
import { fetchCriDockerd } from "../../packages/cri-dockerd";
import { fromKubernetes, kubernetesPackages } from "../../packages/kubernetes-packages";
import { buildPackages, distributionPackages } from "../../packages/provide-packages";
import { nextPatch } from "../../../programs/releases";
import { checkout } from "../../../shared/checkout";
import { testFolder } from "../support/fixture";
import { output } from "../../../../tests/support/tools";

const work = testFolder();
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

it("builds a package again only when its programs have changed, and keeps no other", async () => {
  const folder = join(work, "packages");
  const built: string[] = [];
  const pathOf = async (program: string) => (built.push(program), "/bin/true");
  const build = (...kubernetes: string[]) => {
    built.length = 0;
    return buildPackages({ folder, kubernetes, pathOf, signal: new AbortController().signal });
  };

  await build(versions.kubernetes);
  expect(built).toEqual(expect.arrayContaining(["kubelet", "crictl"]));
  await build(versions.kubernetes, nextPatch.version);
  const next = ["kubelet", "kubectl", "kubeadm"].map((name) => `${name}@${nextPatch.version}`);
  expect(built).toEqual(next);
  const packages = await build(versions.kubernetes);
  expect(built).toEqual([]);
  expect(packages.every(({ file }) => existsSync(file))).toBe(true);
  expect(readdirSync(folder)).toHaveLength(packages.length);
});

it("gives way to pkgs.k8s.io's own packages of a version, and is what the first boot asks for", () => {
  const kubelet = kubernetesPackages(["1.36.3"]).find(({ name }) => name === "kubelet")!;

  // Upstream's are 1.36.3-1.1 and up (github.com/kubernetes/release).
  output("dpkg", ["--compare-versions", kubelet.version, "lt", "1.36.3-1.1"]);
  expect(kubelet.version).toMatch(/^1\.36\.3-/);
});

it("starts the kubelet at every boot, with what kubeadm has written for it", () => {
  const all = kubernetesPackages([versions.kubernetes]);
  const files = Object.assign({}, ...all.map(({ texts }) => texts)) as Record<string, string>;
  const units = "/usr/lib/systemd/system/kubelet.service";
  const [unit, dropIn] = [files[units]!, files[`${units}.d/10-kubeadm.conf`]!];

  expect(unit).toMatch(/^WantedBy=multi-user\.target$/m);
  // Until kubeadm has run it ends at once, for as long as that takes.
  expect(unit).toMatch(/^Restart=always$/m);
  expect(unit).toMatch(/^StartLimitIntervalSec=0$/m);
  // https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/kubelet-integration/
  const environment = Object.fromEntries(
    [...dropIn.matchAll(/^Environment="(\w+)=(.*)"$/gm)].map(([, name, value]) => [name, value]),
  );
  const [program, ...variables] = /^ExecStart=(\/.+)$/m.exec(dropIn)![1]!.split(" ");
  expect(program).toBe(Object.keys(all.find(({ name }) => name === "kubelet")!.binaries)[0]);
  expect(environment).toEqual({
    KUBELET_KUBECONFIG_ARGS:
      "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf",
    KUBELET_CONFIG_ARGS: "--config=/var/lib/kubelet/config.yaml",
  });
  expect(variables).toEqual([
    ...Object.keys(environment).map((name) => `$${name}`),
    "$KUBELET_KUBEADM_ARGS",
    "$KUBELET_EXTRA_ARGS",
  ]);
  expect(dropIn).toMatch(/^EnvironmentFile=-\/var\/lib\/kubelet\/kubeadm-flags\.env$/m);
  // Of two commands systemd would start both.
  expect(dropIn).toMatch(/^ExecStart=\nExecStart=/m);
});

it("has cri-dockerd's archive where the first boot fetches it, with the sum that it checks", async () => {
  const folder = join(work, "cri-dockerd");
  const fetched = jest
    .spyOn(globalThis, "fetch")
    .mockImplementation(async () => new Response("the archive"));

  const item = await fetchCriDockerd(folder, new AbortController().signal);

  fetched.mockRestore();
  const [, named = ""] = /^ {2}archive=(cri-dockerd-.+)$/m.exec(firstBoot)!;
  const archive = output("bash", [
    "-c",
    `CRI_DOCKERD_VERSION=$0; root=; echo ${named}`,
    versions.criDockerd,
  ]).trim();
  const [, url = ""] = /^ {2}url=(https:.+)$/m.exec(firstBoot)!;
  const from = output("bash", [
    "-c",
    `CRI_DOCKERD_VERSION=$0 archive=$1; echo ${url}`,
    versions.criDockerd,
    archive,
  ]).trim();
  expect(item).toEqual({ what: archive, from });
  expect(readdirSync(folder).sort()).toEqual([archive, `${archive}.sha256`]);
  execFileSync("sha256sum", ["--check", "--quiet", `${archive}.sha256`], { cwd: folder });
});

it("lets kubeadm be newer than the kubelet beside it, as an upgrade needs it", () => {
  const kubeadm = kubernetesPackages([nextPatch.version]).find(({ name }) => name === "kubeadm")!;

  expect(kubeadm.depends).toEqual([]);
});
