import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { versions } from "../../../components/versions";
import { testFolder } from "../../../tests/support/test-folder";
import { nextPatch, previousMinor } from "../../programs/releases";
import { chooseDistribution } from "../sources";
import { neededPrograms } from "../mirror";
import { isMirrorFor, openFolder } from "../mirror-folder";
import { answering, smallImage } from "./support/fixture";

const nowhere = answering(/^nowhere$/);

describe("its folder", () => {
  const folder = testFolder();

  it("never takes a folder that has something else in it", () => {
    writeFileSync(join(folder, "thesis.txt"), "mine");

    expect(() => openFolder(folder, "debian-13")).toThrow("has files in it and is no mirror");
    expect(() => openFolder(join(folder, "thesis.txt"), "debian-13")).toThrow("is a file");
  });

  it("is filled by one process at a time", () => {
    const mirror = join(folder, "mirror");
    const opened = openFolder(mirror, "debian-13");

    expect(() => openFolder(mirror, "debian-13")).toThrow(
      `process ${process.pid} is filling ${mirror}`,
    );
    opened.release();
    openFolder(mirror, "debian-13").release();
  });

  it("leaves nothing unfinished, nor keeps what an earlier run left so", () => {
    const mirror = join(folder, "interrupted");
    mkdirSync(join(mirror, ".drafts", "layer-0"), { recursive: true });
    mkdirSync(join(mirror, ".made"));

    const opened = openFolder(mirror, "debian-13");
    expect(existsSync(join(opened.drafts, "layer-0"))).toBe(false);
    opened.release();
    expect(existsSync(opened.drafts)).toBe(false);
  });

  it("can be read by a web server of another user once it is filled, but for what is no part of it", async () => {
    const mirror = join(folder, "served");
    const opened = openFolder(mirror, "debian-13");
    await smallImage(mirror, "registry.example/some/program:v1", "one");
    mkdirSync(join(mirror, "apt"), { mode: 0o700 });
    writeFileSync(join(mirror, "apt", "Release"), "", { mode: 0o600 });
    writeFileSync(join(opened.state, "own"), "", { mode: 0o600 });

    opened.release();

    const parts = readdirSync(mirror, { recursive: true }).map(String);
    const unreadable = parts.filter(
      (name) => (statSync(join(mirror, name)).mode & 0o044) !== 0o044,
    );
    expect(parts).toContain("images/index.json");
    expect(unreadable.sort()).toEqual([".made/own", ".made/system"]);
    expect(statSync(join(mirror, "apt")).mode & 0o777).toBe(0o755);
  });
});

it("mirrors what it is asked for", async () => {
  const said = jest.fn();

  expect((await chooseDistribution("ubuntu-24.04", nowhere, said, false)).name).toBe(
    "ubuntu-24.04",
  );
  expect((await chooseDistribution("debian-13", nowhere, said, true)).name).toBe("debian-13");
  expect(said).not.toHaveBeenCalled();
});

it("leaves a mirror for Ubuntu one while the archive does not answer: Debian's packages would take its place", async () => {
  const said = jest.fn();
  const mirror = join(testFolder(), "mirror");
  const isUbuntus = () => isMirrorFor("ubuntu-24.04", mirror);

  expect(isUbuntus()).toBe(false);
  openFolder(mirror, "ubuntu-24.04").release();
  expect((await chooseDistribution(undefined, nowhere, said, isUbuntus())).name).toBe(
    "ubuntu-24.04",
  );
  expect(said).not.toHaveBeenCalled();

  openFolder(mirror, "debian-13").release();
  expect(isUbuntus()).toBe(false);
});

it("says so when it cannot mirror what machines on Azure run", async () => {
  const said = jest.fn();

  const chosen = await chooseDistribution(undefined, nowhere, said, false);

  expect(chosen.name).toBe("debian-13");
  expect(said).toHaveBeenCalledWith(expect.stringContaining("machines on Azure run Ubuntu 24.04"));
});

describe("before all else it", () => {
  const tools = (there: RegExp, ...kubernetes: string[]) =>
    neededPrograms(answering(there), [versions.kubernetes, ...kubernetes]);

  const names = async (there: RegExp) => (await tools(there)).map(({ name }) => name);

  it("builds nothing that an official source gives", async () => {
    expect(await names(/./)).toEqual(["kubernetes"]);
    expect(await names(/pkgs\.k8s\.io|registry\.k8s\.io|microsoft/)).toEqual([
      "kubernetes",
      "flannel",
    ]);
  });

  it("builds Azure's cloud provider only for stacks that run it", async () => {
    const asked = (cloudProvider: boolean) =>
      neededPrograms(answering(/^nowhere$/), [versions.kubernetes], cloudProvider);
    const programs = ["cloud-controller-manager-static", "cloud-node-manager-static"];

    const [without, withIt] = await Promise.all([asked(false), asked(true)]);
    expect(without.filter(({ name }) => programs.includes(name))).toEqual([]);
    expect(withIt.map(({ name }) => name)).toEqual(expect.arrayContaining(programs));
    expect(withIt.filter(({ image }) => image !== undefined)).toEqual([]);
  });

  it("builds each thing once, and the kubelet when most of it is in Go's cache", async () => {
    const needed = await names(/^nowhere$/);

    expect(new Set(needed).size).toBe(needed.length);
    expect(needed[0]).toBe("kubernetes");
    expect(needed.at(-1)).toBe("kubernetes-node");
    expect(needed).toEqual(expect.arrayContaining(["coredns", "etcd", "flannel", "cni-plugins"]));
  });

  it("builds another version only for those who ask for it", async () => {
    const others = [nextPatch.version, previousMinor.version];
    const versionsOf = async (asked: string[]) =>
      (await tools(/^nowhere$/, ...asked)).map(({ name, version }) => `${name} ${version}`);

    const [usual, more] = await Promise.all([versionsOf([]), versionsOf(others)]);
    expect(usual.join()).not.toMatch(new RegExp(others.join("|")));
    expect(more).toEqual(expect.arrayContaining(others.map((one) => `kubernetes-node ${one}`)));
    expect(new Set(more).size).toBe(more.length);
  });
});
