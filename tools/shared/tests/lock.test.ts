import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { holderOf, tryLock } from "../lock";
import { identityOf } from "../pids";
import { testFolder } from "../../../tests/support/test-folder";

const folder = testFolder();
const path = join(folder, "lock");
afterEach(() => rmSync(path, { force: true }));

/** The number of a process that has ended. */
const gone = (): number => spawnSync("true").pid;

it("is held by one at a time, and free again when given back", () => {
  const release = tryLock(path);

  expect(release).toBeDefined();
  expect(tryLock(path)).toBeUndefined();
  expect(holderOf(path)?.pid).toBe(process.pid);
  release?.();
  expect(holderOf(path)).toBeUndefined();
  expect(tryLock(path)).toBeDefined();
});

it("is taken over from a process that has died", () => {
  writeFileSync(path, JSON.stringify({ pid: gone(), started: "long ago" }));

  expect(tryLock(path)).toBeDefined();
  expect(holderOf(path)?.pid).toBe(process.pid);
});

it("is taken over from a process whose number has been given to another", () => {
  writeFileSync(path, JSON.stringify({ pid: process.pid, started: "before this process" }));

  expect(tryLock(path)).toBeDefined();
});

it("is taken over when it is damaged", () => {
  writeFileSync(path, "{");

  expect(tryLock(path)).toBeDefined();
});

it("is not given back by who has lost it", () => {
  const release = tryLock(path);
  const another = JSON.stringify(identityOf(process.ppid));
  writeFileSync(path, another);

  release?.();

  expect(readFileSync(path, "utf8")).toBe(another);
});

it("leaves no drafts beside it", () => {
  tryLock(path);
  tryLock(path);

  expect(readdirSync(folder)).toEqual(["lock"]);
});
