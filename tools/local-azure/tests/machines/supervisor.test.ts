import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { testFolder } from "../../../../tests/support/test-folder";
import { Supervisor } from "../../machines/supervisor";
import { identityOf, isAlive, type ProcessIdentity } from "../../../shared/pids";

const sleep = { name: "sleep", command: ["sleep", "600"] };

describe("Supervisor", () => {
  let folder: string;
  let supervisor: Supervisor;
  const logged: string[] = [];

  beforeEach(() => {
    folder = testFolder();
    supervisor = new Supervisor(folder, (message) => void logged.push(message));
  });

  afterEach(async () => {
    await supervisor.stop("sleep");
    await supervisor.stop("short");
    supervisor.close();
  });

  const pid = () => supervisor.status()[0]?.pid ?? 0;
  const until = async (look: () => boolean) => {
    while (!look()) {
      await wait(20);
    }
  };
  const writePid = (identity: ProcessIdentity) =>
    fs.writeFileSync(path.join(folder, "old.pid"), JSON.stringify(identity));

  it("starts again what dies, and reports how it died", async () => {
    supervisor.start(sleep);
    const first = identityOf(pid());

    process.kill(first.pid, "SIGKILL");
    await until(() => supervisor.status()[0]?.restarts === 1);

    expect(supervisor.status()).toEqual([
      {
        ...{ name: "sleep", pid: expect.any(Number), since: expect.any(Number) },
        ...{ restarts: 1, lastExit: "SIGKILL" },
      },
    ]);
    expect(logged.at(-1)).toMatch(/^sleep died \(SIGKILL\)/);
  });

  it.each([
    [
      "what it wrote",
      ["sh", "-c", "echo no such flag >&2; exit 3"],
      /^exit code 3$/,
      "no such flag",
    ],
    ["that it is not there", ["/missing"], /ENOENT/, ""],
  ])("says of a program that has ended %s, and goes on", async (_, command, exit, log) => {
    supervisor.start({ name: "short", command });

    await until(() => supervisor.status()[0]?.lastExit !== undefined);

    expect(supervisor.status()[0]?.lastExit).toMatch(exit);
    expect(supervisor.endOfLog("short")).toContain(log);
  });

  it("leaves no process and no pid file behind when it stops one", async () => {
    supervisor.start(sleep);
    const started = identityOf(pid());

    await supervisor.stop("sleep");

    expect(isAlive(started)).toBe(false);
    expect(fs.readdirSync(folder)).toEqual(["sleep.log"]);
  });

  it("ends what an earlier daemon has left, and nobody who was given the same pid", async () => {
    const child = spawn("sleep", ["600"]);
    const left = identityOf(child.pid ?? 0);

    writePid({ ...left, started: `${left.started}0` });
    await supervisor.endOrphans();
    const survived = isAlive(left);
    writePid(left);
    await supervisor.endOrphans();

    expect(survived).toBe(true);
    expect(isAlive(left)).toBe(false);
    expect(fs.readdirSync(folder)).toEqual([]);
  });
});
