import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

import { oldestGo } from "../../programs/builds";
import { oldestEngine } from "../../programs/engine";
import { checkout } from "../../shared/checkout";
import { asRoot, itUnless } from "../../../tests/support/unless";
import { testFolder } from "../../../tests/support/test-folder";

/** What runs without packages. */
const programs = ["zoned.cjs", "command-line.cjs", "commands.cjs"];

let root: string;
let cache: string;
beforeEach(() => {
  root = testFolder();
  cache = join(root, "cache");
  mkdirSync(join(root, "tools/cli"), { recursive: true });
  for (const file of programs)
    cpSync(join(checkout, "tools/cli", file), join(root, "tools/cli", file));
  for (const tool of ["kubernetes-1", "etcd-1", "kwok-1"]) {
    mkdirSync(join(cache, "zoned", tool), { recursive: true });
  }
  lock("package-lock.json", { version: "1.0.0" });
});

/** npm's list of packages: one, and one that is for another platform. */
function lock(file: string, one: object): void {
  const packages = { "": {}, "node_modules/one": one, "node_modules/mac": { optional: true } };
  writeFileSync(join(root, file), JSON.stringify({ packages }));
}

/** What `npm ci` has made when it is done: a Node that only prints what it was asked to run. */
function installed(one: object = { version: "1.0.0" }): void {
  mkdirSync(join(root, "node_modules", "node-x", "bin"), { recursive: true });
  mkdirSync(join(root, "node_modules", "one"), { recursive: true });
  writeFileSync(join(root, "node_modules", "one", "package.json"), "{}");
  program(join(root, "node_modules", "node-x", "bin", "node"), [
    'if [ "$1" = --version ]; then echo v22.0.0; exit; fi',
    'echo "runs $@"',
    "exit ${VERDICT:-0}",
  ]);
  lock(join("node_modules", ".package-lock.json"), one);
  const text = readFileSync(join(root, "node_modules", ".package-lock.json"), "utf8");
  const { packages } = JSON.parse(text) as { packages: Record<string, unknown> };
  delete packages["node_modules/mac"];
  writeFileSync(join(root, "node_modules", ".package-lock.json"), JSON.stringify({ packages }));
}

function program(file: string, lines: readonly string[]): void {
  writeFileSync(file, ["#!/bin/sh", ...lines].join("\n"));
  chmodSync(file, 0o755);
}

/** A folder of programs that stands for a whole PATH. */
function path(programs: Record<string, readonly string[]>): string {
  const folder = mkdtempSync(join(root, "path-"));
  for (const name of ["sh", "tar", "true"]) {
    symlinkSync(execFileSync("which", [name], { encoding: "utf8" }).trim(), join(folder, name));
  }
  for (const [name, lines] of Object.entries(programs)) program(join(folder, name), lines);
  return folder;
}

function run(args: readonly string[], PATH: string, env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["tools/cli/zoned.cjs", ...args], {
    cwd: root,
    encoding: "utf8",
    env: { PATH, XDG_CACHE_HOME: cache, HOME: root, ...env },
  });
  return { status, stdout, stderr };
}

it("hands over to the Node among the packages, with arguments and verdict", () => {
  installed();

  const { status, stdout } = run(["start", "--stack", "dev"], path({}), { VERDICT: "7" });

  expect(stdout).toBe("runs --require ./typescript.cjs tools/cli/zoned.ts start --stack dev\n");
  expect(status).toBe(7);
});

it.each([
  ["tools/cli/trace.ts", "trace --json dumps"],
  ["tools/cli/trace.ts", "compare --json dumps"],
  ["tools/cli/recover.ts", "recover --stack dev"],
  ["tools/cli/settings.ts", "settings"],
  ["tools/cli/arguments.ts", "arguments"],
  ["tools/cli/zoned.ts", "lint"],
])("asks for nothing but packages when %s only has to %s", (file, words) => {
  rmSync(cache, { recursive: true });
  installed();

  const { status, stdout } = run(words.split(" "), mkdtempSync(join(root, "empty-")));

  expect(stdout).toBe(`runs --require ./typescript.cjs ${file} ${words}\n`);
  expect(status).toBe(0);
});

const npm = (more: string) => ({ npm: [`echo "npm $@" > ${root}/npm-was-run`, more] });
const npmWasRun = () => existsSync(join(root, "npm-was-run"));

it("installs nothing while the packages are those of the lock file", () => {
  installed();

  run(["start"], path(npm("exit 0")));

  expect(npmWasRun()).toBe(false);
});

it.each([
  ["there are none", () => undefined],
  ["one has another version", () => installed({ version: "0.9.0" })],
  [
    "one was taken away",
    () => {
      installed();
      rmSync(join(root, "node_modules", "one"), { recursive: true });
    },
  ],
  [
    "an earlier install was interrupted",
    () => {
      installed();
      rmSync(join(root, "node_modules", ".package-lock.json"));
    },
  ],
])("installs the packages when %s", (_, given) => {
  given();

  const { status, stderr } = run(["start"], path(npm("exit 1")));

  expect(npmWasRun()).toBe(true);
  expect(stderr).toContain("installing packages with npm ci (typically ");
  expect(stderr).toContain("npm ci ended with 1");
  expect(status).toBe(1);
});

it("installs all packages, also where npm is set to leave some out", () => {
  run(["start"], path(npm("exit 1")), { NODE_ENV: "production" });

  const words = readFileSync(join(root, "npm-was-run"), "utf8");
  expect(words).toMatch(/^npm ci .*--include=dev --include=optional /);
});

it("sees next time that an install was interrupted, whatever npm had left", () => {
  installed({ version: "0.9.0" });

  run(["start"], path(npm("exit 130")));

  expect(existsSync(join(root, "node_modules", ".package-lock.json"))).toBe(false);
});

it("runs npm with programs of the checkout out of its way, since npm ci replaces them", () => {
  const own = join(root, "node_modules", ".bin");
  mkdirSync(own, { recursive: true });

  run(["start"], [own, path(npm(`echo "$PATH" > ${root}/path; exit 1`))].join(delimiter));

  expect(readFileSync(join(root, "path"), "utf8")).not.toContain(own);
});

it("names everything that is missing at once, with how to get it", () => {
  rmSync(cache, { recursive: true });

  const { status, stderr } = run(["start"], mkdtempSync(join(root, "empty-")));

  expect(stderr).toMatch(/npm is missing: .*\n/);
  expect(stderr).toMatch(/tar is missing: /);
  expect(status).toBe(1);
  expect(existsSync(join(root, "node_modules"))).toBe(false);
});

const offline = {
  NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent("globalThis.fetch=()=>Promise.reject(new Error())")}`,
};

it("starts offline and without Go from a cache of what real machines need, which is no KWOK", () => {
  installed();
  for (const tool of ["etcd-1", "kwok-1"]) rmSync(join(cache, "zoned", tool), { recursive: true });

  const { status, stdout } = run(["start", "--machines", "qemu"], path({}), offline);

  expect(stdout).toContain("runs ");
  expect(status).toBe(0);
});

it("is refused offline and without Go before anything is in the cache", () => {
  installed();
  rmSync(join(cache, "zoned", "kubernetes-1"), { recursive: true });
  mkdirSync(join(cache, "zoned", "kubernetes-1.lock"));

  const { status, stderr } = run(["start"], path({}), offline);

  expect(stderr).toContain("can neither be downloaded");
  expect(status).toBe(1);
});

it("asks nobody before there are packages where a proxy is set, which it does not know yet", () => {
  installed();
  rmSync(join(cache, "zoned", "kubernetes-1"), { recursive: true });

  const behind = { ...offline, HTTPS_PROXY: "http://proxy.example:3128" };

  expect(run(["start"], path({}), behind)).toMatchObject({ status: 0, stderr: "" });
});

it("asks for the versions that the README names", () => {
  const readme = readFileSync(join(checkout, "README.md"), "utf8");
  const script = readFileSync(join(checkout, "tools/cli/zoned.cjs"), "utf8");
  const constant = (name: string): string =>
    new RegExp(`^const ${name} = (\\d+);`, "m").exec(script)?.[1] ?? "";
  const { engines } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as {
    engines: { node: string };
  };

  expect(readme).toContain(
    `with Node.js ≥ ${constant("oldestNode")}, npm and either Go ≥ ${oldestGo.join(".")}`,
  );
  expect(readme).toContain(
    `Pulumi CLI](https://www.pulumi.com/docs/install/) ≥ ${oldestEngine.join(".")}`,
  );
  expect(readme).toContain(`Node.js ≥ ${constant("programNode")}, on which`);
  expect(engines.node).toBe(`>=${constant("oldestNode")}`);
});

it("says which Node to install when none is new enough", () => {
  installed();
  rmSync(join(root, "node_modules", "node-x"), { recursive: true });
  const old = path({ node: [] });
  const script = join(root, "tools/cli/zoned.cjs");
  const text = readFileSync(script, "utf8").replace(
    "const programNode = 22;",
    "const programNode = 99;",
  );
  writeFileSync(script, text);

  expect(run(["start"], old).stderr).toMatch(/no Node 99 .*install Node 99 or later/);
});

it.each([
  ["lies below a file", () => `${root}/package-lock.json/cache`, /cannot be made \(E\w+\)/],
  ["lies where the system takes no folders", () => "/proc/x/y", /cannot be made \(E\w+\)/],
  [
    "is a file",
    () => {
      mkdirSync(join(root, "other"));
      writeFileSync(join(root, "other", "zoned"), "");
      return join(root, "other");
    },
    /is a file/,
  ],
])("says how to go on when the cache %s, and reads all the same", (_, given, words) => {
  installed();
  const XDG_CACHE_HOME = given();

  const { status, stderr } = run(["start"], path({}), { XDG_CACHE_HOME });

  expect(status).toBe(1);
  expect(stderr).toMatch(words);
  expect(stderr).toContain("set XDG_CACHE_HOME to a folder that can be written to");
  expect(run(["trace"], path({}), { XDG_CACHE_HOME }).stdout).toContain("runs ");
});

itUnless(asRoot)("says how to go on without a home folder", () => {
  installed();
  for (const folder of [tmpdir(), root]) chmodSync(folder, 0o755);
  const { HOME: _home, ...env } = process.env;
  const { stderr } = spawnSync(process.execPath, ["tools/cli/zoned.cjs", "start"], {
    cwd: root,
    encoding: "utf8",
    uid: 54_321,
    env: { ...env, PATH: path({}), XDG_CACHE_HOME: "" },
  });

  expect(stderr).toContain("this user has no home folder, and HOME is not set: set XDG_CACHE_HOME");
});
