import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";

import { defaultScale } from "../../local-azure/machines/qemu/sizes";
import { defaultState } from "../../local-azure/rehearsal/state-folder";
import { checkout } from "../../shared/checkout";
import { scenarios } from "../../lab/faults/cases/scenarios";
import { chapters } from "../../lab/machines/chapters";
import { distributions } from "../../mirror/sources";
import { testFolder } from "../../../tests/support/test-folder";

const { scripts } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};

const commands = require(join(checkout, "tools/cli/commands.cjs")) as Record<
  string,
  { readonly file: string; readonly options?: Readonly<Record<string, object>> }
>;

const { readWords } = require(join(checkout, "tools/cli/command-line.cjs")) as {
  readWords: (
    name: string,
    words: readonly string[],
  ) => { options: object; args: string[]; problems: string[] };
};

/** A fresh checkout: no packages, and an npm that would only say that it was asked. */
let fresh: string;
beforeAll(() => {
  fresh = testFolder();
  for (const file of ["tools/cli", "package.json", "package-lock.json"])
    cpSync(join(checkout, file), join(fresh, file), { recursive: true });
  writeFileSync(join(fresh, "npm"), `#!/bin/sh\ntouch ${fresh}/npm-was-run\nexit 1\n`);
  chmodSync(join(fresh, "npm"), 0o755);
});

/** As npm runs a script of package.json, with these words behind `--`. */
function run(script: string, ...words: string[]) {
  const [, ...args] = scripts[script]!.split(" ");
  const { status, stdout, stderr } = spawnSync(process.execPath, [...args, ...words], {
    cwd: fresh,
    encoding: "utf8",
    env: { PATH: fresh, HOME: fresh },
  });
  return { status, stdout, stderr };
}

const installedNothing = () =>
  expect(readdirSync(fresh).sort()).toEqual(["npm", "package-lock.json", "package.json", "tools"]);

const nameOf = (script: string): string => scripts[script]!.split(" ")[2]!;

it.each(Object.keys(scripts))(
  "npm run %s -- --help lists the options without packages",
  (script) => {
    const { status, stdout, stderr } = run(script, "--help");

    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/^Usage: npm /);
    for (const option of Object.keys(commands[nameOf(script)]!.options ?? {}))
      expect(stdout).toMatch(new RegExp(`^  --${option}( <\\S+>)? `, "m"));
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(110);
    installedNothing();
  },
);

it("has the commands that npm has, and their files", () => {
  expect(new Set(Object.keys(scripts).map(nameOf))).toEqual(new Set(Object.keys(commands)));
  for (const { file } of Object.values(commands))
    expect(existsSync(join(checkout, file))).toBe(true);
});

it("says what is wrong with options that do not go together, without a stack trace", () => {
  const { status, stderr } = spawnSync(
    process.execPath,
    ["tools/cli/zoned.cjs", "start", "--scale", "0.5"],
    { cwd: checkout, encoding: "utf8" },
  );

  expect([status, stderr.trim()]).toEqual([
    1,
    "zoned: --scale is of real machines: npm start -- --machines qemu --scale 0.75",
  ]);
});

it("ends with 130 also where what was interrupted goes on to its end", () => {
  const work =
    'process.kill(process.pid, "SIGINT"); await new Promise((end) => setTimeout(end, 100));';
  const { status, stderr } = spawnSync(
    process.execPath,
    [
      ...["--require", "./typescript.cjs", "--eval"],
      `require("./tools/cli/command").perform(async () => { ${work} })`,
    ],
    { cwd: checkout, encoding: "utf8" },
  );

  expect([status, stderr.trim()]).toEqual([
    130,
    "interrupted: waiting for what is under way to end orderly",
  ]);
});

it("lists all commands where none is named", () => {
  const { status, stdout } = spawnSync(process.execPath, ["tools/cli/zoned.cjs"], {
    cwd: fresh,
    encoding: "utf8",
  });

  expect(status).toBe(0);
  for (const script of Object.keys(scripts).filter((each) => each !== "test:day-2"))
    expect(stdout).toMatch(new RegExp(`npm (run )?${script} `));
});

it.each([
  ["start", ["--stak", "dev"], ["unknown option '--stak': expected --stack, --machines,"]],
  ["start", ["--machines", "real"], ["--machines: expected one of simulated, qemu, got 'real'"]],
  ["start", ["--port", "80"], ["--port: expected a port from 1024 to 65529"]],
  ["start", ["--port", "80.5e2"], ["got '80.5e2'"]],
  [
    "start",
    ["--scale", "0", "--port", "x"],
    ["--scale: expected a factor", "--port: expected a port"],
  ],
  ["start", ["--stack"], ["--stack: expected its <name>, got nothing"]],
  // As a variable that is not set leaves it: pulumi would take the stack that is selected.
  ["recover", ["--stack", ""], ["--stack: expected its <name>, got nothing"]],
  [
    "report",
    ["--output=", "--state", ""],
    ["--output: expected its <file>, got nothing", "--state: "],
  ],
  ["start", ["--stack", "--machines", "qemu"], ["--stack: expected its <name>, got '--machines'"]],
  ["start", ["dev"], ["expected options only, got 'dev'"]],
  ["stop", ["--discard=yes"], ["--discard takes no value, got 'yes'"]],
  ["recover", [], ["--stack <name> is missing"]],
  ["doctor", ["--wait", "10"], ["--wait: expected a whole number with its unit"]],
  ["test:faults", ["first"], ["expected one of first-up, replacement"]],
  ["test:faults", ["--jobs", "0"], ["--jobs: expected a whole number from 1"]],
  ["test:machines", ["two"], ["expected one of one, conformance, conformance-all, alone"]],
  [
    "mirror",
    ["8080", ":8080", "10.0.0.4", "10.0.0.4:70000", "10.0.0.4:"].flatMap((at) => ["--serve", at]),
    [
      "--serve: expected ADDRESS:PORT, such as 10.0.0.4:8080, got '8080'",
      ...["got ':8080'", "got '10.0.0.4'", "got '10.0.0.4:70000'", "got '10.0.0.4:'"],
    ],
  ],
  [
    "mirror",
    ["--system", "windows"],
    ["--system: expected one of ubuntu-24.04, debian-13, got 'windows'"],
  ],
  ["lint", ["-x"], ["unknown option '-x': expected none"]],
])("npm run %s -- %j is refused without packages", (script, words, problems) => {
  const { status, stdout, stderr } = run(script, ...words);

  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  for (const problem of problems) expect(stderr).toContain(problem);
  expect(stderr).toMatch(/\nSee npm (run )?[\w:]+ -- --help\n$/);
  installedNothing();
});

it.each([
  [
    "start",
    "--stack dev --scale=0.5 --port 2000",
    { machines: "simulated", stack: "dev", scale: 0.5, port: 2000 },
    [],
  ],
  [
    "recover",
    "--stack=dev --dry-run --config-file a=b",
    { stack: "dev", dryRun: true, configFile: "a=b" },
    [],
  ],
  ["mirror", "--serve 10.0.0.4:8080", { serve: { address: "10.0.0.4", port: 8080 } }, []],
  ["mirror", "--serve mirror.example:80", { serve: { address: "mirror.example", port: 80 } }, []],
  ["mirror", "--serve [::1]:80", { serve: { address: "::1", port: 80 } }, []],
  ["doctor", "--wait 90s", { json: false, wait: 90_000 }, []],
  ["trace", "--json dumps -- --svg", { from: "pod", json: true }, ["dumps", "--svg"]],
  ["test", "-t cordon --json tests/unit", {}, ["-t", "cordon", "--json", "tests/unit"]],
  ["test-faults", "labels --list", { list: true, fresh: false, jobs: 2 }, ["labels"]],
])("reads %s %s", (name, words, options, args) => {
  expect(readWords(name, words.split(" "))).toEqual({ options, args, problems: [] });
});

it("tells of the defaults and names that the programs have", () => {
  const help = (script: string): string => run(script, "--help").stdout.replace(/\s+/g, " ");

  expect(help("start")).toContain(`(default: ${relative(checkout, defaultState)} in the checkout)`);
  expect(help("start")).toContain(`(default: ${defaultScale})`);
  expect(help("mirror")).toContain(`(${distributions.map(({ name }) => name).join(", ")})`);
  expect(help("test:machines")).toContain(`(${chapters.map(({ key }) => key).join(", ")})`);
  expect(help("test:faults")).toContain(`(${scenarios.map(({ key }) => key).join(", ")})`);
});
