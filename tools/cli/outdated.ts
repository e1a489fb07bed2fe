import { minorOf } from "../../components/versions";
import { columns } from "../shared/columns";
import { UserError } from "../shared/user-error";
import { perform } from "./command";
import { type Pin, pins } from "./outdated/pins";
import { type Addresses, inOrder, reasonOf, releasesOf, usualAddresses } from "./outdated/releases";

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
  });
}
