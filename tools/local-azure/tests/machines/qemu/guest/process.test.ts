import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { atNiceness, LastingProcess } from "../../../../machines/qemu/guest/process";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "zoned-process-"))));
afterEach(() => rmSync(folder, { recursive: true }));

test("a process is nice within its session and as one of many", async () => {
  const process = new LastingProcess(join(folder, "one"));
  const print = "nice; cat /proc/self/autogroup 2>/dev/null; true";
  process.start([...atNiceness(10), "sh", "-c", print], {});
  expect(await process.hasEndedWithin(10_000)).toBe(true);

  const [nice, group] = readFileSync(join(folder, "one.log"), "utf8").trim().split("\n");
  expect(nice).toBe("10");
  if (existsSync("/proc/self/autogroup")) expect(group).toMatch(/ nice 10$/);
});

test("a process has another niceness as soon as it is set", async () => {
  const process = new LastingProcess(join(folder, "one"));
  process.start([...atNiceness(10), "sh", "-c", "echo ready; exec sleep 60"], {});
  try {
    while (process.words !== "ready") await wait(20);

    process.setNiceness(3);

    const { pid } = JSON.parse(readFileSync(join(folder, "one.pid"), "utf8")) as { pid: number };
    expect(getPriority(pid)).toBe(3);
    const group = `/proc/${pid}/autogroup`;
    if (existsSync(group)) expect(readFileSync(group, "utf8")).toMatch(/ nice 3$/m);
  } finally {
    await process.kill();
  }
});
