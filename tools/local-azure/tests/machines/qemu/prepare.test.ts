import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { prepareHost, prepareMachines } from "../../../machines/qemu/prepare";
import { tryLock } from "../../../../shared/lock";
import { Progress } from "../../../../shared/progress";

afterEach(() => jest.restoreAllMocks());

it("everything that a host lacks for real machines is named at once", async () => {
  jest.spyOn(process, "getuid").mockReturnValue(0);
  jest.replaceProperty(process, "env", { ...process.env, PATH: "/nowhere" });
  const options = { progress: new Progress(), signal: AbortSignal.timeout(10_000) };

  await expect(prepareHost(options)).rejects.toThrow(
    /mmdebstrap, .*gpg, .* not installed: sudo apt-get install .* mmdebstrap .* gnupg/,
  );
});

it("only one process at a time makes what its cache lacks, whose drafts another would remove", async () => {
  const cache = mkdtempSync(join(tmpdir(), "zoned-cache-"));
  tryLock(join(cache, "machines.lock"));
  jest.replaceProperty(process, "env", { ...process.env, PATH: "/nowhere" });
  const options = { cache, progress: new Progress(), signal: AbortSignal.timeout(10_000) };

  await expect(
    prepareMachines({ ...options, scale: 1, kubernetes: ["1.37.2"], cloudProvider: false }),
  ).rejects.toThrow(`process ${process.pid} prepares real machines in ${cache}: wait for it`);

  rmSync(cache, { recursive: true });
});
