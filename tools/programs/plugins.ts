import { readFileSync } from "node:fs";

import { github, type GoBuild, type Tool } from "./tools";

interface Release {
  readonly name: string;
  /** What comes before the program's name in its archive. */
  readonly prefix: string;
}

/** All but that of Kubernetes are downloaded or not to be had: their sources need more than Go to build. */
function plugin({ name, prefix }: Release): Tool {
  const manifest = require.resolve(`@pulumi/${name}/package.json`);
  const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
  const program = `pulumi-resource-${name}`;
  const repository = `pulumi/pulumi-${name}`;
  return {
    name: program,
    version,
    binaries: [program],
    builds: name === "kubernetes" ? [kubernetesBuild(version)] : [],
    typical: "20 min",
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

/**
 * Its Go module has the two files that upstream's own main embeds, and not the copies that it does
 * embed. The module's newest version is older than the npm package; what it says of itself is the package's.
 */
const kubernetesBuild = (version: string): GoBuild => ({
  module: "plugin-kubernetes",
  packages: ["./pulumi-resource-kubernetes"],
  ldflags: `-s -w -X main.version=${version}`,
  beside: {
    module: "github.com/pulumi/pulumi-kubernetes/provider/v4",
    files: ["schema.json", "terraform-mapping.json"].map(
      (file) => `cmd/pulumi-resource-kubernetes/${file}`,
    ),
  },
});

/** The official plugins of the program, in the versions that its packages ask for. */
export const pluginTools: readonly Tool[] = [
  { name: "azure-native", prefix: "." },
  { name: "tls", prefix: "." },
  { name: "kubernetes", prefix: "" },
].map(plugin);
