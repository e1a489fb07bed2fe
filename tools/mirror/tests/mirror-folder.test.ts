import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { openFolder } from "../mirror-folder";
import { testFolder } from "./support/fixture";

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
