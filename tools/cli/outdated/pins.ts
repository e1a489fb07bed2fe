import { readFileSync } from "node:fs";
import { join } from "node:path";

import { minors, versions } from "../../../components/versions";
import { pinnedModules } from "../../programs/pinned";
import { checkout } from "../../shared/checkout";
import { isRelease, type SourceName } from "./releases";

/** One version of this repository, and where it is written. */
export interface Pin {
  readonly file: string;
  readonly name: string;
  readonly version: string;
  readonly source: SourceName;
}

function npmPins(): Pin[] {
  const file = "package.json";
  const { dependencies, devDependencies, optionalDependencies, overrides } = JSON.parse(
    readFileSync(join(checkout, file), "utf8"),
  ) as Record<string, Record<string, string>>;
  const all = { ...dependencies, ...devDependencies, ...optionalDependencies, ...overrides };
  return Object.entries(all).map(([name, version]) => ({ file, name, version, source: "npm" }));
}

const goPins = (): Pin[] =>
  pinnedModules().map(({ folder, module, version }) => ({
    file: `tools/programs/modules/${folder}`,
    name: module,
    version,
    source: "go",
  }));

/** What clusters are made of, and is not built here or not always in that version. */
const releasePins = (): Pin[] =>
  [
    ["projectcalico/calico", versions.calico],
    ["kubereboot/kured", versions.kured],
    ["Mirantis/cri-dockerd", versions.criDockerd],
    ["kubernetes-sigs/azuredisk-csi-driver", versions.diskDriver],
    ...minors.map((one) => ["kubernetes-sigs/cloud-provider-azure", one.cloudProvider] as const),
  ].map(([name = "", version = ""]) => ({
    file: "components/versions.ts",
    name,
    version: version.replace(/^v/, ""),
    source: "github",
  }));

/** Everything that is pinned to a release: a commit has no newer one. */
export const pins = (): Pin[] =>
  [...npmPins(), ...goPins(), ...releasePins()].filter(({ version }) => isRelease(version));
