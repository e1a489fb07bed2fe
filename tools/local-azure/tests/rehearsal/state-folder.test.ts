import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

import { clearFolder, isOwn, rehearsalFolder, takeFolder } from "../../rehearsal/state-folder";
import { checkout, loadTypeScript } from "../../../shared/checkout";
import { testFolder } from "../../../../tests/support/test-folder";
import { asRoot, itUnless } from "../../../../tests/support/unless";

let folder: string;
let state: string;
beforeEach(() => {
  folder = realpathSync(testFolder());
  state = join(folder, "a", "state ü x");
});

const draft = `rehearsal.json.${"00000000-0000-0000-0000-000000000000"}`;

function hold(...names: string[]): void {
  mkdirSync(state, { recursive: true });
  for (const name of names) writeFileSync(join(state, name), "{}");
}

it.each([
  ["new", () => undefined],
  ["empty", () => hold()],
  ["one that a start was about to mark when it was killed", () => hold(draft)],
  ["one that a stop was about to remove when it was killed", () => hold("command.lock")],
])("takes a folder that is %s, and marks it", (_, given) => {
  given();

  expect(takeFolder(state)).toBe(state);
  expect(JSON.parse(readFileSync(join(state, "rehearsal.json"), "utf8"))).toEqual({
    kind: "zoned rehearsal",
    format: 1,
  });
  expect(rehearsalFolder(state)).toBe(state);
});

it.each([
  ["a file of somebody's", () => hold("thesis.txt")],
  ["no more than names that a rehearsal uses too", () => hold("backend", "machines", "kubeconfig")],
  ["somebody's file of the marker's name", () => hold("rehearsal.json", "thesis.txt")],
])("refuses a folder with %s, and leaves it as it was", (_, given) => {
  given();
  const before = readdirSync(state);

  for (const use of [takeFolder, rehearsalFolder]) {
    expect(() => use(state)).toThrow(`${state} has files in it that are no rehearsal's`);
  }
  expect(readdirSync(state)).toEqual(before);
});

it.each([
  ["the root folder", () => "/"],
  ["the home folder", () => homedir()],
  ["the checkout", () => checkout],
  ["what holds the checkout", () => dirname(checkout)],
])("refuses %s in words of its own", (_, path) => {
  for (const use of [takeFolder, rehearsalFolder]) {
    expect(() => use(path())).toThrow(
      / (is|holds) (this checkout|your home folder).*name a new or an empty one/,
    );
  }
});

it("refuses an empty home folder, also by another path", () => {
  const before = process.env.HOME;
  const link = join(folder, "link");
  mkdirSync(state, { recursive: true });
  symlinkSync(state, link);
  process.env.HOME = state;
  try {
    expect(() => takeFolder(link)).toThrow(`${state} is your home folder`);
  } finally {
    process.env.HOME = before;
  }
});

it("refuses a rehearsal of a format that it does not know", () => {
  hold();
  writeFileSync(
    join(state, "rehearsal.json"),
    JSON.stringify({ kind: "zoned rehearsal", format: 2 }),
  );

  expect(() => rehearsalFolder(state)).toThrow("is a rehearsal of format 2");
});

it("follows a symbolic link, and leaves the folder that it leads to, empty", () => {
  const link = join(folder, "link");
  hold();
  symlinkSync(state, link);

  expect(takeFolder(link)).toBe(state);
  expect(clearFolder(link)).toEqual([]);
  expect(readdirSync(state)).toEqual([]);
  expect(takeFolder(link)).toBe(state);
});

it.each([
  ["is a file", () => `${folder}/file`, "is a file"],
  ["is below a file", () => `${folder}/file/state`, "a part of its path is a file"],
  ["is a link to itself", () => `${folder}/circle`, "its symbolic links lead in a circle"],
  ["is a link to nothing", () => `${folder}/nowhere`, "is a symbolic link that leads nowhere"],
  ["the system takes no folder at", () => "/proc/x/y", "no folder can be made there"],
])("says what is wrong with a path that %s", (_, path, words) => {
  writeFileSync(join(folder, "file"), "");
  symlinkSync(join(folder, "circle"), join(folder, "circle"));
  symlinkSync(state, join(folder, "nowhere"));

  expect(() => takeFolder(path())).toThrow(words);
});

itUnless(asRoot)("says that this user may not write there", () => {
  mkdirSync(state, { recursive: true, mode: 0o755 });
  const program = `try { require("./tools/local-azure/rehearsal/state-folder").takeFolder(process.argv[1]) } catch (e) { console.log(e.name, e.message) }`;
  const { stdout } = spawnSync(
    process.execPath,
    [...loadTypeScript, "-e", program, "/root/state"],
    {
      cwd: checkout,
      encoding: "utf8",
      uid: 65_534,
      env: { ...process.env, HOME: "/nonexistent" },
    },
  );

  expect(stdout).toMatch(/^UserError .* this user may not read and write there; name another one/);
});

it("removes all that a rehearsal puts there, and the folder", () => {
  takeFolder(state);
  hold(
    "up-12-345.log",
    "Pulumi.dev.yaml",
    "kubectl-cache",
    draft,
    "resources.json.new",
    "command.lock",
  );

  expect(clearFolder(state)).toEqual([]);
  expect(existsSync(state)).toBe(false);
});

it("knows every name that the code writes into a state folder", () => {
  const files = ["cli", "local-azure", "pulumi", "mirror"].flatMap((tool) =>
    readdirSync(join(checkout, "tools", tool), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.startsWith("tests/"))
      .map((file) => join(checkout, "tools", tool, file)),
  );
  const names = files.flatMap((file) =>
    [
      ...readFileSync(file, "utf8").matchAll(/join\((?:[\w.]+\.)?state, (?:"([^"]+)"|`([^`]+)`)/g),
    ].map(([, plain, template = ""]) => plain ?? template.replaceAll(/\$\{[^}]*\}/g, "1")),
  );

  expect(names).toContain("resources.json");
  // The name of a run, to which endings are added.
  expect(names.filter((name) => !isOwn(name))).toEqual(["1-1-1"]);
});
