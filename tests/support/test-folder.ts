import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** An empty folder, which is gone when the test file has ended. */
export const testFolder = (): string => mkdtempSync(join(tmpdir(), "test-"));
