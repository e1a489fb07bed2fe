import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made: string[] = [];

afterAll(() => made.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** An empty folder, which is gone when the test file has ended. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "zoned-test-"));
  made.push(folder);
  return folder;
}
