import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { endEarlierRun } from "./earlier-run";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "zoned-earlier-"))));
afterEach(() => rmSync(folder, { recursive: true }));

describe("an engine's lock that was left", () => {
  const locks = () => join(folder, "backend", ".pulumi", "locks", "organization", "zoned", "dev");
  const ending = () =>
    endEarlierRun(
      { binaries: "", state: folder, program: folder, passphrase: "" },
      { stack: "dev", project: "zoned", checkpoint: "", config: "" },
    );
  /** A process under this name that holds the stack; tells by which signal it ended. */
  function holder(name: string) {
    const child = spawn("sleep", ["60"], { argv0: name, stdio: "ignore" });
    mkdirSync(locks(), { recursive: true });
    writeFileSync(join(locks(), "1.json"), JSON.stringify({ pid: child.pid }));
    const ended = new Promise((resolve) => child.on("exit", (_, signal) => resolve(signal)));
    return { child, ended };
  }

  it("goes after its engine has ended orderly", async () => {
    const { ended } = holder("/cache/bin/pulumi");

    await ending();

    expect(await ended).toBe("SIGINT");
    expect(existsSync(locks())).toBe(false);
  });

  it("goes, and whoever has the engine's number by now is left alone", async () => {
    const { child } = holder("editor");

    await ending();

    expect(existsSync(locks())).toBe(false);
    expect(child.exitCode ?? child.signalCode).toBeNull();
    child.kill();
  });
});
