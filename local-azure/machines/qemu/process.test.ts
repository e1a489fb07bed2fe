import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { givingWay, LastingProcess } from "./process";

test("a process that gives way does so within its session and as one of many", async () => {
  const folder = mkdtempSync(join(tmpdir(), "zoned-process-"));
  try {
    const process = new LastingProcess(join(folder, "one"));
    const tell = "nice; cat /proc/self/autogroup 2>/dev/null; true";
    process.start([...givingWay, "sh", "-c", tell], {});
    expect(await process.hasEndedWithin(10_000)).toBe(true);

    const [nice, group] = readFileSync(join(folder, "one.log"), "utf8").trim().split("\n");
    expect(nice).toBe("5");
    if (existsSync("/proc/self/autogroup")) expect(group).toMatch(/ nice 5$/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
