import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { delimiter, join } from "node:path";

import { parse } from "yaml";

import { installedBinaries, isNewEnough, oldestEngine, onPath, ownEngine } from "../engine";
import { clusterTools, engineTool, kubectlTools } from "../tools";
import { checkout } from "../../shared/checkout";
import { testFolder } from "../../../tests/support/test-folder";

const folder = testFolder();

/** A folder with programs that print something. */
function programs(name: string, scripts: Record<string, string>): string {
  const at = join(folder, name);
  mkdirSync(at);
  for (const [file, printed] of Object.entries(scripts)) {
    writeFileSync(join(at, file), `#!/bin/sh\necho ${printed}\n`);
    chmodSync(join(at, file), 0o755);
  }
  return at;
}

it.each([
  ["v3.249.0", true],
  ["v3.260.1-alpha.1\n", true],
  ["v3.248.9", false],
  ["v4.0.0", false],
  ["", false],
])("calls engine %j new enough: %s", (version, expected) => {
  expect(isNewEnough(version)).toBe(expected);
});

it("is the version that Pulumi itself asks for", () => {
  const project = parse(readFileSync(join(checkout, "Pulumi.yaml"), "utf8")) as object;

  expect(project).toMatchObject({ requiredPulumiVersion: `>=${oldestEngine.join(".")}.0` });
});

const host = "pulumi-language-nodejs";

it("takes the user's own engine with the language host beside it", async () => {
  const at = programs("new", { pulumi: "v3.300.0", [host]: "" });

  expect(await ownEngine(at)).toEqual({ pulumi: join(at, "pulumi"), [host]: join(at, host) });
});

it("finds the language host beside an engine that PATH only links to", async () => {
  const at = programs("real", { pulumi: "v3.300.0", [host]: "" });
  const links = programs("links", {});
  symlinkSync(join(at, "pulumi"), join(links, "pulumi"));

  expect(await ownEngine(links)).toEqual({ pulumi: join(links, "pulumi"), [host]: join(at, host) });
});

it("does without an engine that is too old, broken, or has no language host", async () => {
  expect(await ownEngine(programs("old", { pulumi: "v3.100.0", [host]: "" }))).toBeUndefined();
  expect(await ownEngine(programs("broken", { pulumi: "; exit 1", [host]: "" }))).toBeUndefined();
  expect(await ownEngine(programs("alone", { pulumi: "v3.300.0" }))).toBeUndefined();
  expect(await ownEngine(programs("none", {}))).toBeUndefined();
});

it("looks along PATH in order, and only for what can be run", () => {
  const first = programs("first", {});
  const second = programs("second", { it: "" });
  writeFileSync(join(first, "it"), "not a program");

  expect(onPath("it", [first, "", second].join(delimiter))).toBe(join(second, "it"));
  expect(onPath("nothing", second)).toBeUndefined();
});

it("ends real machines with nothing in the cache that only simulated ones run", async () => {
  const cache = programs("cache", {});
  for (const { name, version, binaries } of [engineTool, ...kubectlTools]) {
    programs(
      join("cache", `${name}-${version}`),
      Object.fromEntries(binaries.map((one) => [one, ""])),
    );
  }

  expect(existsSync(join((await installedBinaries(kubectlTools, cache))!, "kubectl"))).toBe(true);
  expect(await installedBinaries(clusterTools, cache)).toBeUndefined();
});
