import { readFileSync } from "node:fs";

import { github, type Tool } from "./tools";

interface Release {
  readonly name: string;
  /** What comes before the program's name in its archive. */
  readonly prefix: string;
}

/** A plugin is downloaded or not to be had: its sources need more than Go to build. */
function plugin({ name, prefix }: Release): Tool {
  const manifest = require.resolve(`@pulumi/${name}/package.json`);
  const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
  const program = `pulumi-resource-${name}`;
  const repository = `pulumi/pulumi-${name}`;
  return {
    name: program,
    version,
    binaries: [program],
    builds: [],
    typical: "",
    downloads: [
      {
        url: `${github}/${repository}/releases/download/v${version}/${program}-v${version}-linux-amd64.tar.gz`,
        // The list of hashes beside it has SHA-1.
        sha256: {
          kind: "release",
          url: `https://api.github.com/repos/${repository}/releases/tags/v${version}`,
        },
        members: { [program]: `${prefix}${program}` },
      },
    ],
  };
}

/** The official plugins of the program, in the versions that its packages ask for. */
export const pluginTools: readonly Tool[] = [
  { name: "azure-native", prefix: "." },
  { name: "tls", prefix: "." },
  { name: "kubernetes", prefix: "" },
].map(plugin);
