import { fetch } from "../../../components/settings/shell-proxy";
import { withTimeLimit } from "../../shared/time-limit";
import { messageOf } from "../../shared/user-error";

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

export type SourceName = keyof typeof sources;

/** The address of each source. */
export type Addresses = Readonly<Record<SourceName, string>>;

/** Where they are for this shell: npm passes its registry on to scripts where that is not the usual one. */
export const usualAddresses = ({
  npm_config_registry,
  GOPROXY = "",
}: NodeJS.ProcessEnv): Addresses => ({
  npm: npm_config_registry ?? "https://registry.npmjs.org",
  go: GOPROXY.split(/[,|]/).find((one) => one.startsWith("http")) ?? "https://proxy.golang.org",
  github: "https://api.github.com",
});

/** Whether a version, without its `v`, is neither a pre-release nor a commit. */
export const isRelease = (version: string): boolean => /^\d+\.\d+\.\d+$/.test(version);

/** Orders versions as numbers, dot by dot. */
export const inOrder = new Intl.Collator("en", { numeric: true }).compare;

/** Milliseconds; a packument of thousands of versions takes seconds. */
const answerWithin = 20_000;

/** The releases of a name, oldest first, without their `v`. */
export async function releasesOf(
  source: SourceName,
  name: string,
  addresses: Addresses,
  signal: AbortSignal,
): Promise<string[]> {
  const { pathOf, versionsIn, accept = "*/*" }: Source = sources[source];
  const url = `${addresses[source].replace(/\/$/, "")}/${pathOf(name)}`;
  const text = await withTimeLimit(answerWithin, signal, async (either) => {
    const response = await fetch(url, { headers: { accept }, signal: either });
    if (!response.ok) throw new Error(`answers ${response.status}`);
    return response.text();
  });
  const all = versionsIn(text).map((version) => version.replace(/^v/, ""));
  const releases = all.filter(isRelease).sort(inOrder);
  if (releases.length === 0) throw new Error("lists no release");
  return releases;
}

/** Why a source has no answer, in a few words; fetch hides it in its error's cause. */
export function reasonOf(error: unknown): string {
  const { cause, name } = error as Error;
  if (name === "SyntaxError") return "answers no JSON";
  if (cause === undefined) return messageOf(error);
  return `does not answer (${(cause as NodeJS.ErrnoException).code ?? messageOf(cause)})`;
}
