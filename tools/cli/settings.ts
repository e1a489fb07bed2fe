import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { isMap, isScalar, type Pair, parseDocument } from "yaml";

import { checkout } from "../shared/checkout";

interface Setting {
  /** Heading above the settings that begin here; empty within a group. */
  readonly group: string;
  readonly name: string;
  readonly type: string;
  readonly default: unknown;
  readonly text: string;
  /** What a change replaces: the description's last sentence. */
  readonly change: string;
}

/** Comments carry the group, above a name, and the type, after it. */
function settingOf({ key, value }: Pair, firstGroup: string): Setting {
  if (!isScalar(key) || !isMap(value)) throw new Error("Pulumi.yaml: expected settings by name");
  const description = String(value.get("description"));
  const [change = ""] = /A change [^.]*\.$/.exec(description) ?? [];
  return {
    group: (key.commentBefore ?? firstGroup).trim(),
    name: String(key.value),
    type: (value.commentBefore ?? "").trim(),
    default: (value.toJSON() as { readonly default: unknown }).default,
    text: description.slice(0, description.length - change.length).trim(),
    change,
  };
}

/** Every setting that Pulumi.yaml declares, in its order. */
export function settingsOf(pulumiYaml: string): readonly Setting[] {
  const config = parseDocument(pulumiYaml).get("config");
  if (!isMap(config)) throw new Error("Pulumi.yaml: expected settings under config");
  return config.items.map((pair, index) =>
    settingOf(pair, index === 0 ? (config.commentBefore ?? "") : ""),
  );
}

const defaultOf = ({ default: value }: Setting): string => {
  if (value === "") return "empty";
  return `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
};

/** Markdown would take `<stack>` for HTML. */
const escaped = (text: string): string => text.replaceAll("<", "&lt;");

const rowsOf = (setting: Setting): readonly string[] => [
  ...(setting.group === ""
    ? []
    : [
        "",
        `## ${setting.group}`,
        "",
        "| setting | default | what it is | a change |",
        "|---|---|---|---|",
      ]),
  `| \`${setting.name}\`<br/>${setting.type} | ${defaultOf(setting)} | ${escaped(setting.text)} | ${setting.change} |`,
];

const introduction = `# Settings

<!-- Written by npm run settings from Pulumi.yaml: edit that file. -->

Set them with \`pulumi config set <name> <value>\`; entries of lists and objects with \`--path\`, such as
\`pulumi config set --path 'workerPools[0].count' 3\`. The program checks all settings before it creates anything, and
reports all problems at once, each with the command that fixes it, to be run in that order.

A machine of an existing cluster is replaced, restarted or removed only while all control planes are healthy: control planes
one at a time, workers of each pool as many at a time as its \`maxUnavailable\`, which is one by default. What would replace a
single control plane is refused: go to three first.`;

/** The whole of docs/settings.md. */
export const settingsPage = (pulumiYaml: string): string =>
  `${[introduction, ...settingsOf(pulumiYaml).flatMap(rowsOf)].join("\n")}\n`;

if (require.main === module) {
  const text = readFileSync(join(checkout, "Pulumi.yaml"), "utf8");
  writeFileSync(join(checkout, "docs/settings.md"), settingsPage(text));
}
