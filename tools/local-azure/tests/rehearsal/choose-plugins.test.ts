import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { testFolder } from "../../../../tests/support/test-folder";
import { arePluginsThere, choosePlugins, pluginsOf } from "../../rehearsal/choose-plugins";
import { pluginTools, type Tool } from "../../../programs/tools";
import { Progress } from "../../../shared/progress";

let state: string;
let cache: string;
let said: string;
beforeEach(() => {
  state = testFolder();
  cache = testFolder();
  said = "";
});

/** The official plugins, on a machine that reaches no download. */
const tools: readonly Tool[] = pluginTools.map((tool) => ({ ...tool, downloads: [], builds: [] }));

const isThere = (those = tools): void => {
  for (const { name, version } of those) {
    mkdirSync(join(cache, `${name}-${version}`), { recursive: true });
    writeFileSync(join(cache, `${name}-${version}`, name), name);
  }
};

const given = (asked = "") => ({
  ...{ cache, asked, tools, signal: new AbortController().signal },
  progress: new Progress({ write: (text) => (said += text) }),
});
const choose = (asked?: string) => choosePlugins(state, given(asked));

const version = /\d+\.\d+\.\d+/.source;
const versions = new RegExp(
  `azure-native ${version}, pulumi-resource-tls ${version} and pulumi-resource-kubernetes ${version}`,
);

it("takes the official plugins where they are to be had, puts them where the engine looks, and says so", async () => {
  isThere();

  expect(await choose()).toEqual(["azure-native", "tls", "kubernetes"]);

  expect(said).toMatch(new RegExp(`runs the official plugins pulumi-resource-${versions.source}`));
  for (const { name, version } of tools) {
    const folder = `${name.replace("pulumi-", "")}-v${version}`;
    expect(readFileSync(join(state, "pulumi-home", "plugins", folder, name), "utf8")).toBe(name);
  }
});

it("takes stand-ins elsewhere, and says so and why", async () => {
  expect(await choose()).toEqual([]);

  expect(said).toMatch(
    /runs stand-ins for the plugins azure-native, tls and kubernetes, since pulumi-resource-azure-native .*: no official/,
  );
});

it.each([
  ["are asked for", async () => isThere(), "stand-ins"],
  ["began a folder", async () => (await choose(), isThere()), undefined],
])("takes stand-ins where they %s, whatever there is", async (_, given, asked) => {
  await given();

  expect(await choose(asked)).toEqual([]);
  expect(pluginsOf(state)).toEqual([]);
});

it("takes those that are to be had where official ones are asked for, and says which are not, and why", async () => {
  isThere(tools.filter(({ name }) => name.endsWith("kubernetes")));

  expect(await choose("official")).toEqual(["kubernetes"]);

  expect(said).toMatch(
    /runs the official plugins pulumi-resource-kubernetes \S+ and stand-ins for the plugins azure-native and tls, since pulumi-resource-azure-native /,
  );
  expect(await choose()).toEqual(["kubernetes"]);
});

it("builds none that nobody has asked for", async () => {
  const built = { module: "kwok", ldflags: "" };
  const buildable = tools.map((tool) => ({ ...tool, builds: [built] }));

  expect(await choosePlugins(state, { ...given(), tools: buildable })).toEqual([]);
});

it.each([
  [
    "to change the plugins of a folder",
    async () => (await choose(), isThere()),
    "official",
    /ZONED_PLUGINS is official, but .* was started with stand-ins .*: unset ZONED_PLUGINS to go on, or npm stop first/,
  ],
  [
    "official plugins that are not to be had",
    async () => undefined,
    "official",
    /cannot be had:\n {2}- pulumi-resource-azure-native .*\n {2}- pulumi-resource-tls .*\n {2}- pulumi-resource-kubernetes .*\nexpected a network .*or unset ZONED_PLUGINS/,
  ],
  [
    "another choice",
    async () => undefined,
    "none",
    /ZONED_PLUGINS is none, expected official or stand-ins/,
  ],
])("refuses %s, and says why", async (_, given, asked, says) => {
  await given();

  await expect(choose(asked)).rejects.toThrow(says);
});

it("misses official plugins that have gone from the cache", async () => {
  isThere();
  await choose();
  expect(arePluginsThere(state)).toBe(true);
  rmSync(join(cache, `${tools[0]!.name}-${tools[0]!.version}`), { recursive: true });

  expect(arePluginsThere(state)).toBe(false);
  await expect(choose()).rejects.toThrow(/the stacks here need them: .* npm stop -- --discard/);
});
