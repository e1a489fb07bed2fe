import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { endEarlierRun } from "../../rehearsal/earlier-run";
import { environmentOfRun } from "../../../pulumi/run-processes";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "zoned-earlier-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const ending = () =>
  endEarlierRun(
    { binaries: "", state: folder, program: folder, passphrase: "" },
    { stack: "dev", project: "zoned" },
  );

describe("an engine's lock that was left", () => {
  const locks = () => join(folder, "backend", ".pulumi", "locks", "organization", "zoned", "dev");
  /** A process under this name that holds the stack; returns by which signal it ended. */
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

describe("what an engine that was killed has left, its lock being gone", () => {
  /** A process with this in its environment; returns by which signal it ended. */
  function left(env: Record<string, string>, argv0 = "sleep") {
    const child = spawn("sleep", ["60"], {
      argv0,
      stdio: "ignore",
      env: { ...process.env, ...env },
    });
    const ended = new Promise((resolve) => child.on("exit", (_, signal) => resolve(signal)));
    return { child, ended };
  }

  it("ends, be it a language host, a program or a plugin", async () => {
    const { ended } = left(environmentOfRun(join(folder, "up-1-1")));

    await ending();

    expect(await ended).toBe("SIGTERM");
  });

  it("ends orderly where it is the engine itself", async () => {
    const { ended } = left(environmentOfRun(join(folder, "up-1-1")), "/cache/bin/pulumi");

    await ending();

    expect(await ended).toBe("SIGINT");
  });

  it.each([
    ["another rehearsal's", () => environmentOfRun(`${folder}-2/up-1-1`)],
    ["that of a rehearsal in a folder of this one", () => environmentOfRun(`${folder}/one/up-1-1`)],
    ["somebody's who uses its state", () => ({ PULUMI_HOME: join(folder, "pulumi-home") })],
  ])("stays when it is %s", async (_, env) => {
    const { child } = left(env());

    await ending();

    expect(child.exitCode ?? child.signalCode).toBeNull();
    child.kill();
  });
});
