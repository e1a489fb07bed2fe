import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Attachment } from "../../daemon/attachment";
import { endEarlierRun, Rehearsal } from "../../rehearsal/rehearsal";
import { stop } from "../../rehearsal/stop";
import { lockFolder, takeFolder } from "../../rehearsal/state-folder";
import { checkout, loadTypeScript } from "../../../shared/checkout";
import { identityOf } from "../../../shared/pids";
import { Progress } from "../../../shared/progress";
import { environmentOfRun } from "../../../pulumi/pulumi";
import { testFolder } from "../../../../tests/support/test-folder";
import { asRoot, describeUnless } from "../../../../tests/support/unless";

let folder: string;
let state: string;
let said: string;
beforeEach(() => {
  folder = testFolder();
  state = join(folder, "state");
  takeFolder(state);
  said = "";
});

const stopping = (discard = false) =>
  stop(
    { state, discard },
    new Progress({ write: (text) => (said += text) }),
    new AbortController().signal,
  );

/** The engine's state of a stack that has nothing. */
const empty = JSON.stringify({ version: 3, checkpoint: { stack: "organization/zoned/dev" } });

/** A rehearsal whose daemon is dead, with a process that it has left. */
function left(files: Record<string, string>) {
  const processes = join(state, "machines", "clusters", "api", "processes");
  const checkpoints = join(state, "backend", ".pulumi", "stacks", "zoned");
  for (const at of [processes, checkpoints]) mkdirSync(at, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(state, name), text);
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  const ended = new Promise<NodeJS.Signals | null>((resolve) =>
    child.on("exit", (_, signal) => resolve(signal)),
  );
  writeFileSync(join(processes, "etcd.pid"), JSON.stringify(identityOf(child.pid!)));
  return ended;
}

it("says that there is nothing to stop", async () => {
  rmSync(state, { recursive: true });

  await stopping();

  expect(said).toBe("nothing to stop: there is no rehearsal\n");
});

it.each([
  ["resources.json", '{"half'],
  ["qemu.json", '{"half'],
  ["backend/.pulumi/stacks/zoned/dev.json", '{"half'],
  // JSON that is no state of a stack is no empty stack.
  ["backend/.pulumi/stacks/zoned/dev.json", "{}"],
  ["dev.assumed.json", '{"half'],
])(
  "removes what a %s that is %s keeps from being destroyed, and says so",
  async (damaged, text) => {
    const ended = left({ "backend/.pulumi/stacks/zoned/dev.json": empty, [damaged]: text });

    await stopping();

    expect(said).toContain(`removed without pulumi destroy (${join(state, damaged)} is damaged)`);
    expect(existsSync(state)).toBe(false);
    expect(await ended).toMatch(/^SIG(TERM|KILL)$/);
  },
);

it("ends what a killed engine has left, lock or no lock", async () => {
  const env = { ...process.env, ...environmentOfRun(join(state, "up-1-1")) };
  const host = spawn("sleep", ["60"], { stdio: "ignore", env });
  const ended = new Promise((resolve) => host.on("exit", (_, signal) => resolve(signal)));

  await stopping();

  expect(await ended).toBe("SIGTERM");
});

it("leaves somebody's files in a rehearsal's folder, names them, and rehearses there again", async () => {
  const ended = left({ "notes.txt": "mine" });

  await stopping();

  expect(said).toContain(`left in ${state}, since they are no rehearsal's: notes.txt\n`);
  expect(readdirSync(state).sort()).toEqual(["notes.txt", "rehearsal.json"]);
  expect(takeFolder(state)).toBe(state);
  await ended;
});

it("leaves a folder alone that is no rehearsal's", async () => {
  rmSync(state, { recursive: true });
  mkdirSync(state);
  writeFileSync(join(state, "thesis.txt"), "mine");

  await expect(stopping(true)).rejects.toThrow(`${state} has files in it that are no rehearsal's`);
  expect(readdirSync(state)).toEqual(["thesis.txt"]);
});

it("removes everything without asking the engine with --discard", async () => {
  const ended = left({ "backend/.pulumi/stacks/zoned/dev.json": "{}" });

  await stopping(true);

  expect(said).toContain("removed without pulumi destroy (--discard was given)");
  expect(existsSync(state)).toBe(false);
  expect(await ended).toMatch(/^SIG(TERM|KILL)$/);
});

it("keeps its hands off while another command works, and names it", async () => {
  const release = lockFolder(state);

  await expect(stopping(true)).rejects.toThrow(
    `another command works on ${state} (process ${process.pid})`,
  );
  expect(existsSync(state)).toBe(true);
  release();
});

describeUnless(asRoot)("on a full disk", () => {
  /** A small disk of its own, which a rehearsal has filled, in a process that sees it alone. */
  function stopped(discard: boolean): string {
    const program = `
      const { writeFileSync, existsSync, readdirSync } = require("node:fs");
      const { stop } = require("./tools/local-azure/rehearsal/stop");
      const { takeFolder } = require("./tools/local-azure/rehearsal/state-folder");
      const { Progress } = require("./tools/shared/progress");
      const state = process.argv[1];
      takeFolder(state);
      try { writeFileSync(state + "/requests.jsonl", Buffer.alloc(1e6)); } catch {}
      stop({ state, discard: ${discard} }, new Progress(process.stdout), new AbortController().signal).then(
        () => console.log("is there: " + existsSync(state)),
        (error) => console.log(error.name, error.message, readdirSync(state)),
      );
    `;
    const { stdout, stderr } = spawnSync(
      "unshare",
      [
        ...["--mount", "sh", "-c", 'mount -t tmpfs -o size=64k tmpfs "$0" && exec "$@"', folder],
        ...[process.execPath, ...loadTypeScript, "-e", program, join(folder, "full")],
      ],
      { cwd: checkout, encoding: "utf8" },
    );
    return stdout + stderr;
  }

  it("removes everything with --discard, which makes room", () => {
    expect(stopped(true)).toMatch(/removed without pulumi destroy.*is there: false/s);
  });

  it("says so without it, names what makes room, and leaves no drafts", () => {
    const text = stopped(false);

    expect(text).toMatch(/^UserError the disk of .* is full.*npm stop -- --discard/m);
    expect(text).not.toContain("command.lock");
  });
});

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
  function leftIn(env: Record<string, string>, argv0 = "sleep") {
    const child = spawn("sleep", ["60"], {
      argv0,
      stdio: "ignore",
      env: { ...process.env, ...env },
    });
    const ended = new Promise((resolve) => child.on("exit", (_, signal) => resolve(signal)));
    return { child, ended };
  }

  it("ends orderly where it is the engine itself", async () => {
    const { ended } = leftIn(environmentOfRun(join(folder, "up-1-1")), "/cache/bin/pulumi");

    await ending();

    expect(await ended).toBe("SIGINT");
  });

  it.each([
    ["another rehearsal's", () => environmentOfRun(`${folder}-2/up-1-1`)],
    ["that of a rehearsal in a folder of this one", () => environmentOfRun(`${folder}/one/up-1-1`)],
    ["somebody's who uses its state", () => ({ PULUMI_HOME: join(folder, "pulumi-home") })],
  ])("stays when it is %s", async (_, env) => {
    const { child } = leftIn(env());

    await ending();

    expect(child.exitCode ?? child.signalCode).toBeNull();
    child.kill();
  });
});

const azure: Attachment = {
  ports: { resourceManager: 1, azureNative: 2, tls: 3, kubernetes: 4, proxy: 5, blob: 6, login: 7 },
  authority: "",
  apiAddress: async () => undefined,
};

it.each(["{}", '{"version":3,"checkpo'])(
  "refuses to go on from a state that is %s, asks no engine, and leaves it as it is",
  async (text) => {
    const stacks = join(state, "backend", ".pulumi", "stacks", "zoned");
    mkdirSync(stacks, { recursive: true });
    writeFileSync(join(stacks, "dev.json"), text);
    writeFileSync(join(state, "dev.assumed.json"), "[]");

    const opening = Rehearsal.open({ state, stack: "dev", binaries: "/none", azure });

    await expect(opening).rejects.toThrow(/the state of stack dev, .*dev\.json, is damaged: it is/);
    expect(readFileSync(join(stacks, "dev.json"), "utf8")).toBe(text);
  },
);

it("names a file of settled answers that is damaged", async () => {
  writeFileSync(join(state, "dev.assumed.json"), "[{");

  await expect(Rehearsal.open({ state, stack: "dev", binaries: "/none", azure })).rejects.toThrow(
    `${join(state, "dev.assumed.json")} is damaged`,
  );
});
