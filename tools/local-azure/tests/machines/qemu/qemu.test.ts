import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { takenMib } from "../../../machines/qemu/qemu";
import { identityOf } from "../../../../shared/pids";

test("the memory of machines that a killed local Azure has left is theirs already", () => {
  const state = mkdtempSync(join(tmpdir(), "zoned-taken-"));
  try {
    expect(takenMib(state)).toBe(0);
    for (const [name, pid] of Object.entries({ runs: process.pid, ended: 999_999_999 })) {
      const folder = join(state, "machines", "guests", name);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "qemu.pid"), JSON.stringify(identityOf(pid)));
    }

    const own = process.memoryUsage().rss / 1024 / 1024;
    expect(takenMib(state)).toBeGreaterThan(own / 2);
    expect(takenMib(state)).toBeLessThan(own * 2);
  } finally {
    rmSync(state, { recursive: true });
  }
});
