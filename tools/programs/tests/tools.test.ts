import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import { minorOf, minors, versions } from "../../../components/versions";
import {
  craneTool,
  programsInImages,
  programsInPackages,
  programsOfRelease,
} from "../../mirror/mirrored-programs";
import { controllerManager, diskDriver, diskPlugin, nodeManager } from "../controllers";
import { hashIn } from "../downloads";
import { placesOf } from "../installs";
import { pinned, previousMinor, releaseOf, releases } from "../releases";
import { cacheFolder, clusterTools, engineTool, nodeTool } from "../tools";
import { checkout } from "../../shared/checkout";

const mirrored = [...programsInPackages, ...Object.values(programsInImages).flat(), craneTool];
const ofReleases = releases.flatMap(({ version }) => programsOfRelease(version));
const controllers = [controllerManager, nodeManager, ...diskDriver];
const each = [engineTool, ...clusterTools, ...controllers, ...mirrored, ...ofReleases].map(
  (tool) => [`${tool.name} ${tool.version}`, tool] as const,
);
const all = [...new Map(each).values()];
const builds = all.flatMap((tool) => tool.builds.map((build) => ({ tool, ...build })));

it("builds what versions.ts asks for", () => {
  expect(pinned("kubernetes", "k8s.io/kubernetes")).toBe(versions.kubernetes);
  expect(versions.etcd).toMatch(
    new RegExp(`^${pinned("etcd", "go.etcd.io/etcd/server/v3")}-\\d+$`),
  );
  expect(clusterTools.map(({ name, version }) => `${name} ${version}`)).toEqual(
    expect.arrayContaining([`kubernetes ${versions.kubernetes}`]),
  );
});

it("builds the controllers of versions.ts, where a module of that version can be had", () => {
  // There is none of v1.37.
  expect([minors[0].cloudProvider, controllerManager.version]).toEqual(["v1.37.5", "1.36.5"]);
  // There is none of v1.34.5, whose manifests are used.
  expect([versions.diskDriver, diskPlugin.version]).toEqual(["v1.34.5", "1.34.4"]);
});

it.each(controllers)("downloads $name from an image, by digest where one is published", (tool) => {
  const { repository, reference } = tool.image!;

  if (repository.startsWith("https://mcr.microsoft.com/v2/")) {
    expect(reference).toBe(`v${tool.version}`);
  } else {
    expect(repository).toBe(`https://registry.k8s.io/v2/sig-storage/${tool.name}`);
    expect(reference).toMatch(/^sha256:[0-9a-f]{64}$/);
  }
});

it("builds controllers of the packages of the Kubernetes that their cloud provider is of", () => {
  const pins = (module: string, pattern: RegExp): string[] => {
    const text = readFileSync(join(checkout, "tools/programs/modules", module, "go.mod"), "utf8");
    return [...text.matchAll(pattern)].map(([, name, version]) => `${name} ${version}`);
  };

  const shared = pins("controllers", /^replace (\S+) => \S+ (\S+)$/gm);

  expect(shared.length).toBeGreaterThan(20);
  const ofKubernetes = pins(
    `${previousMinor.sources}kubernetes`,
    /^(?:\t|replace \S+ => )(\S+) (\S+)/gm,
  );
  expect(shared.filter((pin) => !ofKubernetes.includes(pin))).toEqual([]);
});

it.each(controllers)("has $name say its version", async (tool) => {
  const { stdout } = await promisify(execFile)(placesOf(tool)[tool.name]!, ["--version"]);

  expect(stdout).toMatch(RegExp(String.raw`\bv${tool.version}$`, "m"));
});

it("builds the minor that an upgrade comes from, with its etcd and the CoreDNS of its kubeadm", () => {
  expect(minorOf(previousMinor.version)).toBe(minors[1].minor);
  expect(
    programsOfRelease(previousMinor.version).map((one) => `${one.name} ${one.version}`),
  ).toEqual([
    `kubernetes ${previousMinor.version}`,
    "coredns 1.14.2",
    "etcd 3.6.14",
    "etcdctl 3.6.14",
    `kubernetes-node ${previousMinor.version}`,
  ]);
});

it("says which versions can be built where another is asked for", () => {
  expect(() => releaseOf("1.35.1")).toThrow(
    `Kubernetes 1.35.1 is not among the versions that can be built here: ${versions.kubernetes}, `,
  );
});

/** All but the pause program, which imports the standard library alone. */
const withModules = builds.filter(({ module }) => module !== "pause");

it.each(withModules)("pins every module of $module by its hash", ({ module }) => {
  const folder = join(checkout, "tools/programs/modules", module);

  const text = readFileSync(join(folder, "go.mod"), "utf8");
  const required = [...text.matchAll(/^(?:require )?\t?(\S+) (v\S+)/gm)];
  const sums = readFileSync(join(folder, "go.sum"), "utf8");
  expect(required).not.toEqual([]);
  const replaced = new Map(
    [...text.matchAll(/^replace (\S+) => \S+ (v\S+)/gm)].map(([, name, version]) => [
      name,
      version,
    ]),
  );
  const pins = required.map(([, name, version]) => `${name} ${replaced.get(name) ?? version} h1:`);
  expect(pins.filter((pin) => !sums.includes(pin))).toEqual([]);
});

it("builds kubelet and kube-proxy for those alone who run real nodes", () => {
  const started = clusterTools.flatMap(({ builds }) => builds.flatMap(({ packages }) => packages));

  expect(started).toContain("k8s.io/kubernetes/cmd/kubeadm");
  expect(started.join()).not.toMatch(/kubelet|kube-proxy/);
  expect(nodeTool.binaries).toEqual(["kubelet", "kube-proxy"]);
});

it("says which version of a module is missing", () => {
  expect(() => pinned("etcd", "example.com/nothing")).toThrow(
    "etcd/go.mod does not ask for example.com/nothing",
  );
});

const published = all.filter(({ downloads }) => downloads.length > 0);

it.each(published)("downloads all of $name for Linux", ({ binaries, downloads }) => {
  const named = downloads.flatMap(({ binary, members }) => binary ?? Object.keys(members ?? {}));
  expect(named.sort()).toEqual([...binaries].sort());
  for (const { url, sha256 } of downloads) {
    expect(url).toMatch(/^https:.*(amd64|x64|x86_64)/);
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
