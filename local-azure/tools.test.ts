import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { versions } from "../components/versions";
import { hashIn } from "./downloads";
import { cacheFolder, clusterTools, engineTool, pinned } from "./tools";

const all = [engineTool, ...clusterTools];
const builds = all.flatMap((tool) => tool.builds.map((build) => ({ tool, ...build })));

it("builds what versions.ts asks for", () => {
  expect(`${pinned("kubernetes", "k8s.io/kubernetes")}`).toBe(versions.kubernetes);
  expect(versions.etcd).toMatch(
    new RegExp(`^${pinned("etcd", "go.etcd.io/etcd/server/v3")}-\\d+$`),
  );
  expect(clusterTools.map(({ name, version }) => `${name} ${version}`)).toEqual(
    expect.arrayContaining([`kubernetes ${versions.kubernetes}`]),
  );
});

it.each(builds)("pins every module of $module by its hash", ({ module }) => {
  const folder = join(__dirname, "tools", module);

  expect(existsSync(join(folder, "go.sum"))).toBe(true);
  expect(readFileSync(join(folder, "go.mod"), "utf8")).toMatch(/^tool /m);
});

it("says which version of a module is missing", () => {
  expect(() => pinned("etcd", "example.com/nothing")).toThrow(
    "etcd/go.mod does not ask for example.com/nothing",
  );
});

it.each(all)("downloads all of $name for Linux", ({ binaries, downloads }) => {
  const given = downloads("linux", "arm64") ?? [];

  const named = given.flatMap(({ binary, members }) => binary ?? Object.keys(members ?? {}));
  expect(named.sort()).toEqual([...binaries].sort());
  for (const { url, sha256 } of given) {
    expect(url).toMatch(/^https:.*arm64/);
    expect(sha256.url).toMatch(/^https:/);
  }
});

it("keeps its cache where the user keeps caches", () => {
  expect(cacheFolder({ XDG_CACHE_HOME: "/var/cache/me" })).toBe("/var/cache/me/zoned");
  expect(cacheFolder({ XDG_CACHE_HOME: "" })).toMatch(/\/\.cache\/zoned$/);
});

describe("a published SHA-256", () => {
  const hash = "a".repeat(64);
  const other = "b".repeat(64);

  it("is found in a list by the file's name", () => {
    expect(hashIn(`${other}  other.tar.gz\n${hash}  it.tar.gz\n`, "list", "it.tar.gz")).toBe(hash);
    expect(hashIn(`${hash} *it.tar.gz\n`, "list", "it.tar.gz")).toBe(hash);
  });

  it("is found alone", () => {
    expect(hashIn(`${hash}\n`, "bare", "kubectl")).toBe(hash);
  });

  it("is found in a release among its files", () => {
    const release = { assets: [{ name: "x" }, { name: "it", digest: `sha256:${hash}` }] };
    expect(hashIn(JSON.stringify(release), "release", "it")).toBe(hash);
  });

  it("is not made up from a page that says something else", () => {
    expect(hashIn("<html>log in first</html>", "bare", "it")).toBeUndefined();
    expect(hashIn(`${hash}  another`, "list", "it")).toBeUndefined();
    expect(hashIn('{"assets":[{"name":"it"}]}', "release", "it")).toBeUndefined();
  });
});
