import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import { type InstallOptions, placesOf, tryToInstall } from "../../programs/installs";
import { pluginTools, type Tool } from "../../programs/tools";
import { readJson, writeWhole } from "../../shared/files";
import { UserError } from "../../shared/user-error";
import { pulumiHome } from "../../pulumi/pulumi";
import type { OfficialPlugins } from "../daemon/attachment";

export const pluginsFile = (state: string): string => join(state, "plugins.json");

/** Where the engine of a state folder looks for plugins. */
const pluginHome = (state: string): string => join(pulumiHome(state), "plugins");

/** The official plugins that a state folder's stacks are of; none by default. */
export const pluginsOf = (state: string): OfficialPlugins =>
  existsSync(pluginsFile(state))
    ? (readJson(pluginsFile(state)) as { official: OfficialPlugins }).official
    : [];

interface PluginOptions extends InstallOptions {
  /** As `ZONED_PLUGINS` has it. */
  readonly asked?: string;
  readonly tools?: readonly Tool[];
}

/**
 * Chooses a state folder's plugins, once: the official ones where all of them can be downloaded. Where
 * they are asked for, those that can be downloaded or built, and stand-ins for the others. What they keep in the state differs, so
 * a stack stays with those that made it.
 *
 * @throws UserError when others are asked for than the stacks are of, or cannot be had
 */
export async function choosePlugins(
  state: string,
  options: PluginOptions,
): Promise<OfficialPlugins> {
  const { asked = "", tools = pluginTools, progress, cache } = options;
  if (!["", "official", "stand-ins"].includes(asked)) {
    throw new UserError(`ZONED_PLUGINS is ${asked}, expected official or stand-ins`, 2);
  }
  const kept = existsSync(pluginsFile(state)) ? pluginsOf(state) : undefined;
  if (kept !== undefined && asked !== "" && (asked === "official") !== kept.length > 0) {
    throw new UserError(
      `ZONED_PLUGINS is ${asked}, but ${state} was started with ${described(kept, tools)}, and what they keep in a stack's state differs: ` +
        "unset ZONED_PLUGINS to go on, or npm stop first",
    );
  }
  const wanted = tools.filter((tool) =>
    kept === undefined ? asked !== "stand-ins" : kept.includes(nameOf(tool)),
  );
  const had: Tool[] = [];
  const problems: string[] = [];
  for (const tool of wanted) {
    const isBuilt = asked === "official" || kept !== undefined;
    const unavailable = await tryToInstall([isBuilt ? tool : { ...tool, builds: [] }], options);
    problems.push(...unavailable);
    if (unavailable.length === 0) had.push(tool);
  }
  const isEnough =
    asked === "official" && kept === undefined ? had.length > 0 : had.length === wanted.length;
  if (!isEnough && (kept !== undefined || asked === "official")) {
    throw missing(problems, kept !== undefined);
  }
  const official = isEnough ? had : [];
  writeWhole(pluginsFile(state), JSON.stringify({ official: official.map(nameOf) }));
  place(official, state, cache);
  const why = problems.length > 0 ? `, since ${problems.join("; ")}` : "";
  progress.line(`runs ${described(official.map(nameOf), tools)}${why}`);
  return official.map(nameOf);
}

const nameOf = ({ name }: Tool): string => name.replace("pulumi-resource-", "");

/** Whether the plugins that were put into a state folder's home are still in the cache. */
export function arePluginsThere(state: string): boolean {
  const home = pluginHome(state);
  const files = existsSync(home) ? readdirSync(home, { recursive: true, encoding: "utf8" }) : [];
  return files.every((file) => existsSync(join(home, file)));
}

function described(official: OfficialPlugins, tools: readonly Tool[]): string {
  const [own, others] = [true, false].map((isOwn) =>
    tools.filter((tool) => official.includes(nameOf(tool)) === isOwn),
  ) as [Tool[], Tool[]];
  return [
    ...(own.length > 0
      ? [`the official plugins ${listed(own.map(({ name, version }) => `${name} ${version}`))}`]
      : []),
    ...(others.length > 0 ? [`stand-ins for the plugins ${listed(others.map(nameOf))}`] : []),
  ].join(" and ");
}

const listed = (names: readonly string[]): string => new Intl.ListFormat("en-GB").format(names);

const missing = (problems: readonly string[], isStarted: boolean): UserError =>
  new UserError(
    [
      "the official plugins cannot be had:",
      ...problems.map((one) => `  - ${one}`),
      isStarted
        ? "the stacks here need them: a network that reaches github.com and api.github.com, or give the rehearsal up by npm stop -- --discard"
        : "expected a network that reaches github.com and api.github.com; or unset ZONED_PLUGINS, to run stand-ins",
    ].join("\n"),
  );

function place(tools: readonly Tool[], state: string, cache?: string): void {
  for (const tool of tools) {
    const kind = tool.name.replace(/^pulumi-/, "");
    const folder = join(pluginHome(state), `${kind}-v${tool.version}`);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const [name, path] of Object.entries(placesOf(tool, cache))) {
      rmSync(join(folder, name), { force: true });
      symlinkSync(path, join(folder, name));
    }
  }
}
