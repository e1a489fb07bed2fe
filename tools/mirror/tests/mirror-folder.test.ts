import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { openFolder } from "../mirror-folder";
import { smallImage, testFolder } from "./support/fixture";

const folder = testFolder();

it("never takes a folder that has something else in it", () => {
  writeFileSync(join(folder, "thesis.txt"), "mine");

  expect(() => openFolder(folder)).toThrow("has files in it and is no mirror");
  expect(() => openFolder(join(folder, "thesis.txt"))).toThrow("is a file");
});

it("is filled by one process at a time", () => {
  const mirror = join(folder, "mirror");
  const opened = openFolder(mirror);

  expect(() => openFolder(mirror)).toThrow(`process ${process.pid} is filling ${mirror}`);
  opened.release();
  openFolder(mirror).release();
});

it("leaves nothing unfinished, nor keeps what an earlier run left so", () => {
  const mirror = join(folder, "interrupted");
  mkdirSync(join(mirror, ".drafts", "layer-0"), { recursive: true });
  mkdirSync(join(mirror, ".made"));

  const opened = openFolder(mirror);
  expect(existsSync(join(opened.drafts, "layer-0"))).toBe(false);
  opened.release();
  expect(existsSync(opened.drafts)).toBe(false);
});

it("can be read by a web server of another user once it is filled, but for what is no part of it", async () => {
  const mirror = join(folder, "served");
  const opened = openFolder(mirror);
  await smallImage(mirror, "registry.example/some/program:v1", "one");
  mkdirSync(join(mirror, "apt"), { mode: 0o700 });
  writeFileSync(join(mirror, "apt", "Release"), "", { mode: 0o600 });
  writeFileSync(join(opened.state, "own"), "", { mode: 0o600 });

  opened.release();

  const parts = readdirSync(mirror, { recursive: true }).map(String);
  const unreadable = parts.filter((name) => (statSync(join(mirror, name)).mode & 0o044) !== 0o044);
  expect(parts).toContain("images/index.json");
  expect(unreadable).toEqual([".made/own"]);
  expect(statSync(join(mirror, "apt")).mode & 0o777).toBe(0o755);
});
