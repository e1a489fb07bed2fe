import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { packageIn, writeRepository } from "../../packages/apt-repository";
import { archivePackages, type Package, stanzas } from "../../packages/archive-packages";
import { packDeb } from "../../packages/kubernetes-packages";
import type { Distribution } from "../../distributions";
import { type MirrorServer, serveMirror } from "../../serve/serve";
import { output } from "../../../../tests/support/tools";
import { testFolder } from "../../../../tests/support/test-folder";

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

  await expect(asMachine("wary-machine")).rejects.toThrow(/apt-get ended with 100/);

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

  expect(readdirSync(join(folder, "pool")).filter((name) => name.startsWith("upper"))).toEqual([]);
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
