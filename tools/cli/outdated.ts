import { readFileSync } from "node:fs";
import { join } from "node:path";

import { fetch } from "../../components/settings/shell-proxy";
import { minorOf, minors, versions } from "../../components/versions";
import { pinnedModules } from "../programs/releases";
import { checkout } from "../shared/checkout";
import { columns } from "../shared/columns";
import { withTimeLimit } from "../shared/concurrency";
import { messageOf, UserError } from "../shared/user-error";
import { perform } from "./command";

/** What publishes versions, and how it lists them. */
interface Source {
  /** Where it lists the versions of a name, below its address. */
  pathOf(name: string): string;
  versionsIn(text: string): string[];
  readonly accept?: string;
}

const sources = {
  npm: {
    pathOf: (name) => name,
    versionsIn: (text) => Object.keys((JSON.parse(text) as { versions: object }).versions),
    // Without it, some answers have tens of megabytes.
    accept: "application/vnd.npm.install-v1+json",
  },
  go: {
    pathOf: (name) => `${name}/@v/list`,
    versionsIn: (text) => text.split("\n"),
  },
  github: {
    // By date, so that the newest are among the hundred, which is as many as GitHub answers at once.
    pathOf: (name) => `repos/${name}/releases?per_page=100`,
    versionsIn: (text) =>
      (JSON.parse(text) as { tag_name: string }[]).map(({ tag_name }) => tag_name),
  },
} as const satisfies Record<string, Source>;

type SourceName = keyof typeof sources;

/** The address of each source. */
type Addresses = Readonly<Record<SourceName, string>>;

function valid(variable: string, address: string): string {
  if (URL.canParse(address)) return address;
  throw new UserError(`${variable} is no address, such as https://registry.example`);
}

/** Where they are for this shell: npm passes its registry on to scripts where that is not the usual one. */
export const usualAddresses = ({
  npm_config_registry,
  GOPROXY = "",
}: NodeJS.ProcessEnv): Addresses => ({
  npm: valid("npm_config_registry", npm_config_registry ?? "https://registry.npmjs.org"),
  go: valid(
    "GOPROXY",
    GOPROXY.split(/[,|]/).find((one) => one.startsWith("http")) ?? "https://proxy.golang.org",
  ),
  github: "https://api.github.com",
});

/** Whether a version, without its `v`, is neither a pre-release nor a commit. */
const isRelease = (version: string): boolean => /^\d+\.\d+\.\d+$/.test(version);

/** Orders versions as numbers, dot by dot. */
const inOrder = new Intl.Collator("en", { numeric: true }).compare;

/** Milliseconds; a packument of thousands of versions takes seconds. */
const answerWithin = 20_000;

/** fetch takes no address with a login in it, which a company's registry may have. */
function addressed(address: string): { readonly url: string; readonly login: object } {
  const { username, password } = new URL(address);
  if (username === "") return { url: address, login: {} };
  const words = [username, password].map(decodeURIComponent).join(":");
  return {
    url: address.replace(/\/\/[^/@]*@/, "//"),
    login: { authorization: `Basic ${Buffer.from(words).toString("base64")}` },
  };
}

/** The releases of a name, oldest first, without their `v`. */
async function releasesOf(
  source: SourceName,
  name: string,
  addresses: Addresses,
  signal: AbortSignal,
): Promise<string[]> {
  const { pathOf, versionsIn, accept = "*/*" }: Source = sources[source];
  const { url, login } = addressed(`${addresses[source].replace(/\/$/, "")}/${pathOf(name)}`);
  const text = await withTimeLimit(answerWithin, signal, async (either) => {
    const response = await fetch(url, { headers: { accept, ...login }, signal: either });
    if (!response.ok) throw new Error(`answers ${response.status}`);
    return response.text();
  });
  const all = versionsIn(text).map((version) => version.replace(/^v/, ""));
  const releases = all.filter(isRelease).sort(inOrder);
  if (releases.length === 0) throw new Error("lists no release");
  return releases;
}

/** Why a source has no answer, in a few words; fetch hides it in its error's cause. */
function reasonOf(error: unknown): string {
  const { cause, name } = error as Error;
  if (name === "SyntaxError") return "answers no JSON";
  // Of an address that cannot be asked, fetch says all of it.
  if (cause === undefined) return name === "TypeError" ? "cannot be asked" : messageOf(error);
  return `does not answer (${(cause as NodeJS.ErrnoException).code ?? messageOf(cause)})`;
}

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

/** What clusters are made of besides, and nobody here can be asked for. */
export const notCompared =
  `not compared: Ubuntu's image ${versions.ubuntuImage} (az vm image list --location LOCATION --publisher Canonical ` +
  `--offer ubuntu-24_04-lts --sku server --all --output table); etcd's image ${versions.etcd}, which kubeadm chooses\n`;

/** Everything that is pinned to a release: a commit has no newer one. */
export const pins = (): Pin[] =>
  [...npmPins(), ...goPins(), ...releasePins()].filter(({ version }) => isRelease(version));

/** The cells of a pin that is behind; undefined for one that is not. */
function rowOf({ file, name, version }: Pin, releases: readonly string[]): string[] | undefined {
  const newer = releases.filter((one) => inOrder(one, version) > 0);
  if (newer.length === 0) return undefined;
  const ofMinor = newer.filter((one) => minorOf(one) === minorOf(version));
  return [file, name, version, ofMinor.at(-1) ?? "–", newer.at(-1)!];
}

const header = ["PINNED IN", "NAME", "PINNED", "NEWEST OF ITS MINOR", "NEWEST"];

/**
 * What is behind, as a table, and a line for each source that does not say.
 *
 * @throws UserError when none of them does
 */
export async function outdated(
  pins: readonly Pin[],
  addresses: Addresses,
  signal: AbortSignal,
): Promise<string> {
  const answers = await Promise.allSettled(
    pins.map(({ source, name }) => releasesOf(source, name, addresses, signal)),
  );
  signal.throwIfAborted();
  const rows: string[][] = [];
  const silent = new Map<string, string[]>();
  let known = 0;
  for (const [index, answer] of answers.entries()) {
    const pin = pins[index]!;
    if (answer.status === "fulfilled") {
      known += 1;
      const row = rowOf(pin, answer.value);
      if (row) rows.push(row);
    } else {
      const line = `${new URL(addresses[pin.source]).host} ${reasonOf(answer.reason)}`;
      silent.set(line, [...(silent.get(line) ?? []), pin.name]);
    }
  }
  const lines = [...silent].map(
    ([line, names]) => `${line}; not compared: ${[...new Set(names)].join(", ")}`,
  );
  if (known === 0) {
    throw new UserError(
      "no source says which versions there are; expected a network that reaches one of them, " +
        `or npm_config_registry and GOPROXY to name others:\n  ${lines.join("\n  ")}`,
    );
  }
  const table = rows.length === 0 ? [] : [columns([header, ...rows]), ""];
  return [...table, `${known - rows.length} of ${known} are the newest.`, ...lines, ""].join("\n");
}

if (require.main === module) {
  perform(async (signal) => {
    process.stdout.write(await outdated(pins(), usualAddresses(process.env), signal));
    process.stdout.write(notCompared);
  });
}
