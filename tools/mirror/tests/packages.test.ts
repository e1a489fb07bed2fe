import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { minorFor, versions } from "../../../components/versions";
import { debian, type Distribution } from "../sources";
import { fetchArchive, releaseArchives } from "../packages/release-archives";
import { fromKubernetes, kubernetesPackages, packDeb } from "../packages/kubernetes-packages";
import {
  buildPackages,
  distributionPackages,
  optionalPackages,
  providePackages,
} from "../packages/provide-packages";
import { nextPatch } from "../../programs/releases";
import { checkout } from "../../shared/checkout";
import { answering } from "./support/fixture";
import { output } from "../../../tests/support/tools";
import { testFolder } from "../../../tests/support/test-folder";
import { packageIn, writeRepository } from "../packages/apt-repository";
import { archivePackages, type Package, stanzas } from "../packages/archive-packages";
import { type MirrorServer, serveMirror } from "../serve/serve";

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

describe("a repository of packages", () => {
  const mirror = testFolder();
  const work = testFolder();
  const folder = join(mirror, "apt");
  const { signal } = new AbortController();
  const repository = { folder, keys: join(work, "keys"), signal };
  let server: MirrorServer;
  let packages: Package[];

  beforeAll(async () => {
    const program = join(work, "program");
    writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
    const make = async (name: string, depends: readonly string[]): Promise<Package> => {
      const recipe = { name, version: "1:2.0-1", depends, description: "made for a test" };
      const binaries = { [`/usr/bin/${name}`]: "program" };
      const texts = { [`/etc/default/${name}`]: "A=1\n" };
      const file = join(work, `${name}_1%3a2.0-1_amd64.deb`);
      await packDeb(
        { ...recipe, binaries, texts },
        file,
        join(work, name),
        async () => program,
        signal,
      );
      return packageIn(file, signal);
    };
    packages = [await make("upper", ["lower"]), await make("lower", [])];
    await writeRepository(packages, repository);
    server = await serveMirror(mirror, { address: "127.0.0.1", port: 0 });
  });
  afterAll(() => server.close());

  /** What a machine's apt fetches that trusts this mirror alone. */
  const asMachine = (name: string): Promise<Package[]> => {
    const nothing: Distribution = {
      name: "none",
      archive: "",
      suites: [],
      components: "",
      keyring: join(folder, "Release.key"),
      keyringPackage: "",
    };
    const keyFile = join(work, `${name}.asc`);
    writeFileSync(keyFile, readFileSync(join(folder, "Release.key")));
    const extra = { uri: `${server.url}/apt/`, keyFile };
    return archivePackages(["upper"], {
      distribution: nothing,
      extra,
      folder: join(work, name),
      signal,
    });
  };

  it("is a repository that apt trusts by its key and installs from, dependencies and all", async () => {
    const fetched = await asMachine("machine");

    expect(fetched.map(({ name, version }) => `${name} ${version}`).sort()).toEqual([
      "lower 1:2.0-1",
      "upper 1:2.0-1",
    ]);
    for (const { file } of fetched) expect(existsSync(file)).toBe(true);
  });

  it("stays as it is while its packages do, so that machines' caches stay good", async () => {
    const before = readFileSync(join(folder, "InRelease"), "utf8");
    const at = statSync(join(folder, "InRelease")).mtimeMs;

    await writeRepository(packages, repository);

    expect(readFileSync(join(folder, "InRelease"), "utf8")).toBe(before);
    expect(statSync(join(folder, "InRelease")).mtimeMs).toBe(at);
  });

  it("is refused by apt when somebody changes its index", async () => {
    const index = join(folder, "Packages.gz");
    const good = readFileSync(index);
    const plain = readFileSync(join(folder, "Packages"));
    writeFileSync(index, good.subarray(0, good.length - 1));
    writeFileSync(join(folder, "Packages"), `${plain}\n`);

    await expect(asMachine("wary-machine")).rejects.toThrow(/^apt-get .* ended with 100/);

    writeFileSync(index, good);
    writeFileSync(join(folder, "Packages"), plain);
  });

  it("replaces a damaged package in what was fetched before", async () => {
    const [first] = await asMachine("second-machine");
    writeFileSync(first!.file, "damaged");

    await asMachine("second-machine");

    expect(statSync(first!.file).size).toBe(Number(first!.fields.get("Size")));
  });

  it("has no package that it no longer offers, and goes on with the key that machines trust", async () => {
    const key = readFileSync(join(folder, "Release.key"), "utf8");
    await writeRepository(packages.slice(1), repository);

    expect(readdirSync(join(folder, "pool")).filter((name) => name.startsWith("upper"))).toEqual(
      [],
    );
    expect(readFileSync(join(folder, "Release.key"), "utf8")).toBe(key);
    await writeRepository(packages, repository);
  });

  it("has a key that never expires, since nobody gives machines another one", () => {
    const shown = output("gpg", ["--show-keys", "--with-colons", join(folder, "Release.key")]);

    const [, , , , , created, expires] = /^pub:.*$/m.exec(shown)![0].split(":");
    expect([created, expires]).toEqual([expect.stringMatching(/^\d+$/), ""]);
  });

  it("keeps the key that it signs with where nobody else reads, and not where it is served", () => {
    expect(statSync(repository.keys).mode & 0o077).toBe(0);
    expect(readdirSync(mirror, { recursive: true }).join()).not.toMatch(/private/);
  });

  it("reads fields that go on over several lines", () => {
    const [one, two] = stanzas("A: 1\nB: first\n second: x\nC: 3\n\n\nA: 2\n");

    expect([...one!]).toEqual([
      ["A", "1"],
      ["B", "first\n second: x"],
      ["C", "3"],
    ]);
    expect(two!.get("A")).toBe("2");
  });
});
