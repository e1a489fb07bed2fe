import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { end, identityOf, isAlive } from "../pids";
import { holderOf, tryLock } from "../lock";
import { testFolder } from "../../../tests/support/test-folder";

/** A process whose first thread ends at once, and is a zombie for as long as the other lives. */
const headless = `
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print("begun", flush=True)
ctypes.CDLL(None).pthread_exit(None)
`;

const stateOf = (pid: number): string | undefined =>
  /\) (\w) /.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];

test("a process is alive until its last thread is gone, which may hold ports", async () => {
  const child = spawn("python3", ["-c", headless], { stdio: ["ignore", "pipe", "inherit"] });
  const identity = identityOf(child.pid!);
  await once(child.stdout, "data");
  while (stateOf(child.pid!) !== "Z") await wait(20);

  expect(isAlive(identity)).toBe(true);

  await end(identity, ["SIGKILL"]);
  expect(isAlive(identity)).toBe(false);
});

test("another process with the same number is not the one that was meant", () => {
  const { pid } = process;
  expect(isAlive(identityOf(pid))).toBe(true);
  expect(isAlive({ pid, started: "earlier" })).toBe(false);
});

describe("a lock", () => {
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
});
