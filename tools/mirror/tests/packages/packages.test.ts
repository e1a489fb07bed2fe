import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { minorFor, versions } from "../../../../components/versions";
import { debian } from "../../distributions";
import { fetchArchive, releaseArchives } from "../../packages/release-archives";
import { fromKubernetes, kubernetesPackages } from "../../packages/kubernetes-packages";
import {
  buildPackages,
  distributionPackages,
  optionalPackages,
  providePackages,
} from "../../packages/provide-packages";
import { nextPatch } from "../../../programs/releases";
import { checkout } from "../../../shared/checkout";
import { answering } from "../support/fixture";
import { output } from "../../../../tests/support/tools";
import { testFolder } from "../../../../tests/support/test-folder";

const work = testFolder();
const nothing = () => Promise.reject(new Error("nothing is built"));
const firstBoot = readFileSync(join(checkout, "cloud-init/first-boot.sh"), "utf8");

it("has the packages that the first boot names, and no other", () => {
  const installs = [...firstBoot.matchAll(/^\s+apt_install ([^|\n]*)/gm)].map(
    ([, words]) => words!,
  );
  const lists = [...firstBoot.matchAll(/(?:packages|tools)\+?=\(([^)]*)\)/g)].map(
    ([, words]) => words!,
  );
  const others = ["docker-cli", "cri-tools"];
  const literal = [...installs, ...lists]
    .flatMap((words) => words.split(" "))
    .filter((word) => /^[a-z][a-z0-9.+-]+$/.test(word) && !others.includes(word));

  expect([...distributionPackages, ...optionalPackages].sort()).toEqual(literal.sort());
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

it.each([
  { folder: "cri-dockerd", name: "cri-dockerd-.+", url: 'https://github.com/Mirantis/[^"]+' },
  {
    folder: "credential-provider",
    name: "\\$name-linux-.+",
    url: 'https://packages.aks.azure.com/cloud-provider-azure/[^"]+',
  },
])(
  "has the archive in $folder where the first boot fetches it, with the sum that it checks",
  async ({ folder: name, ...of }) => {
    const folder = join(work, name);
    const fetched = jest
      .spyOn(globalThis, "fetch")
      .mockImplementation(async () => new Response("the archive"));
    const [archive] = releaseArchives([versions.kubernetes])[name]!;

    const item = await fetchArchive(archive!, folder, nothing, new AbortController().signal);

    fetched.mockRestore();
    const [, named = ""] = new RegExp(`^ +archive=(${of.name})$`, "m").exec(firstBoot)!;
    const [, from = ""] = new RegExp(`^ +fetch_archive "(${of.url})"`, "m").exec(firstBoot)!;
    const env = {
      ...process.env,
      CRI_DOCKERD_VERSION: versions.criDockerd,
      CREDENTIAL_PROVIDER_VERSION: minorFor(versions.kubernetes).cloudProvider,
      name: "azure-acr-credential-provider",
    };
    const [what, address] = execFileSync(
      "bash",
      ["-c", `archive=${named}; echo $archive; echo ${from}`],
      {
        ...{ env, encoding: "utf8" },
      },
    ).split("\n");
    expect(item).toEqual({ what, from: address });
    expect(readdirSync(folder).sort()).toEqual([what, `${what}.sha256`]);
    execFileSync("sha256sum", ["--check", "--quiet", `${what}.sha256`], { cwd: folder });
  },
);

it("packs the credential provider that it has built where upstream's archive cannot be had", async () => {
  const folder = join(work, "built");
  const fetched = jest.spyOn(globalThis, "fetch").mockRejectedValue(new Error("no route"));
  const [archive] = releaseArchives([versions.kubernetes])["credential-provider"]!;
  const asked: string[] = [];
  const pathOf = async (program: string) => {
    asked.push(program);
    return "/bin/true";
  };

  const item = await fetchArchive(archive!, folder, pathOf, new AbortController().signal);

  fetched.mockRestore();
  expect(item).toMatchObject({ from: "built from Go modules" });
  expect(asked).toEqual(["acr-credential-provider"]);
  const { what } = item;
  execFileSync("sha256sum", ["--check", "--quiet", `${what}.sha256`], { cwd: folder });
  expect(output("tar", ["-tzf", join(folder, what)]).trim()).toBe("azure-acr-credential-provider");
});

it("says what is missing and how a stack does without where an archive can be had in no way", async () => {
  const fetched = jest.spyOn(globalThis, "fetch").mockRejectedValue(new Error("no route"));
  const [archive] = releaseArchives([])["cri-dockerd"]!;

  const folder = join(work, "nowhere");
  const item = await fetchArchive(archive!, folder, nothing, new AbortController().signal);

  fetched.mockRestore();
  expect(item).toMatchObject({
    why: expect.stringContaining("github.com does not answer"),
    without: "pulumi config set containerRuntime docker",
  });
});

it("lets kubeadm be newer than the kubelet beside it, as an upgrade needs it", () => {
  const kubeadm = kubernetesPackages([nextPatch.version]).find(({ name }) => name === "kubeadm")!;

  expect(kubeadm.depends).toEqual([]);
});

it.each([
  ["an error page", () => new Response("try later", { status: 503 }), "answered 503"],
  ["a page of something between", () => new Response("<html>"), "answered something else"],
])("takes %s for no key of Kubernetes' packages", async (_, answer, why) => {
  const fetched = jest.spyOn(globalThis, "fetch").mockImplementation(async () => answer());
  const providing = providePackages({
    ...{ kubernetes: [versions.kubernetes], distribution: debian, pathOf: nothing },
    ...{ folder: join(work, "own"), aptFolder: join(work, "apt"), sources: answering(/./) },
    signal: new AbortController().signal,
  });

  await expect(providing).rejects.toThrow(
    new RegExp(`^the key that .* cannot be had: https://pkgs.k8s.io/.*Release.key: ${why}; run`),
  );
  fetched.mockRestore();
  expect(existsSync(join(work, "apt", "kubernetes.asc"))).toBe(false);
});
