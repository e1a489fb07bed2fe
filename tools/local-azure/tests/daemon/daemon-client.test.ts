import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { endDaemon, ensureDaemon, lockFile, recordFile } from "../../daemon/daemon-client";
import { identityOf } from "../../../shared/pids";
import { Progress } from "../../../shared/progress";
import { freePort } from "../../../../tests/support/listen";

let state: string;
beforeEach(() => (state = mkdtempSync(join(tmpdir(), "zoned-daemon-"))));
afterEach(async () => {
  await endDaemon(state);
  rmSync(state, { recursive: true });
});

const ensure = () =>
  ensureDaemon(
    { state, binaries: "" },
    new Progress({ write: () => undefined }),
    AbortSignal.timeout(60_000),
  );

test("a killed daemon whose process still exists is replaced by one that answers", async () => {
  const ending = identityOf(spawn("sleep", ["1"], { stdio: "ignore" }).pid!);
  const port = await freePort();
  const ports = {
    ...{ resourceManager: port, azureNative: port, tls: port, kubernetes: port, proxy: port },
  };
  writeFileSync(recordFile(state), JSON.stringify({ ...ending, since: "", binaries: "", ports }));
  writeFileSync(lockFile(state), JSON.stringify(ending));

  const azure = await ensure();

  expect(await azure.apiAddress("none")).toBeUndefined();
});

test("a daemon that answers is not replaced", async () => {
  const { ports } = await ensure();

  expect((await ensure()).ports).toEqual(ports);
});
