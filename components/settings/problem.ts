/** One thing wrong with a setting, in the order a reader needs it. */
export interface Problem {
  /** The setting, or a path in it such as `workerPools[0].size`. */
  readonly key: string;
  /** What was given, after the name: "is 2". */
  readonly is: string;
  /** What was expected, and why. */
  readonly expected: string;
  /** The command that fixes it. */
  readonly fix: string;
}

/** The problem as one sentence. */
export const sentence = ({ key, is, expected, fix }: Problem): string =>
  `${key} ${is}, expected ${expected} (${fix})`;

/** What checks have found; each gives false where nothing is wrong. */
export const findings = <T extends object = Problem>(...checks: readonly (T | false)[]): T[] =>
  checks.filter((one) => one !== false);

/** "is 2", or "is not set". */
export const found = (value: unknown): string =>
  value === undefined || value === null || value === ""
    ? "is not set"
    : `is ${JSON.stringify(value)}`;

/** A word of a command, as a shell takes it. */
export const quoted = (text: string): string =>
  /^[\w.:/@+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/**
 * What to type to give a setting a value. With a path, Pulumi would turn "1" and "true" into other
 * types.
 */
export function toSet(key: string, value: string | number | boolean): string {
  const nested = /[.[]/.test(key);
  const kept = nested && typeof value === "string" && /^(true|false|-?\d+)$/.test(value);
  return [
    "pulumi config set",
    ...(nested ? ["--path"] : []),
    ...(kept ? ["--type string"] : []),
    quoted(key),
    value === "" ? "''" : quoted(String(value)),
  ].join(" ");
}

/** What to type to give one a secret value: Pulumi asks for it, so that it is in no shell's history. */
export const toSetSecret = (key: string): string =>
  `pulumi config set --secret ${/[.[]/.test(key) ? "--path " : ""}${quoted(key)}`;

/** What to type to take a setting, or an entry of one, away. */
export const toRemove = (key: string): string =>
  `pulumi config rm ${/[.[]/.test(key) ? "--path " : ""}${quoted(key)}`;

/** A problem that another value fixes. */
export const wants = (
  key: string,
  value: unknown,
  expected: string,
  better: string | number | boolean,
): Problem => ({ key, is: found(value), expected, fix: toSet(key, better) });

/**
 * The entry of a path in a setting; names with a dot or slash are quoted, as `--path` reads them.
 */
export const entry = (key: string, name: string): string =>
  /^[\w-]+$/.test(name) ? `${key}.${name}` : `${key}["${name}"]`;

const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      next.push(Math.min(row[j]! + Number(letter !== other), row[j + 1]! + 1, next[j]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
};

/** The known word that is most like the given one. */
export const nearest = (word: string, known: readonly string[]): string =>
  known.reduce((best, next) =>
    distance(word.toLowerCase(), next.toLowerCase()) <
    distance(word.toLowerCase(), best.toLowerCase())
      ? next
      : best,
  );

/** The known word that is the given one but for its case; else the first. */
export const inItsCase = (word: unknown, known: readonly string[]): string =>
  known.find((one) => one.toLowerCase() === String(word).toLowerCase()) ?? known[0]!;

/** The known word that was probably meant; empty where none is so much like the given one. */
export function meant(word: string, known: readonly string[]): string {
  const like = nearest(word, known);
  const differs = distance(word.toLowerCase(), like.toLowerCase());
  return differs <= word.length / 3 ? `did you mean ${like}?` : "";
}

const among = (known: readonly string[]): string =>
  known.length < 10 ? `one of ${known.join(", ")}` : "another";

/** Unknown names, each with the one that was probably meant. */
export const unknownNames = (
  key: string,
  names: readonly string[],
  known: readonly string[],
): Problem[] =>
  names
    .filter((name) => !known.includes(name))
    .map((name) => ({
      key: key === "" ? name : entry(key, name),
      is: "is not a known name",
      expected: `${among(known)}; did you mean ${nearest(name, known)}?`,
      fix: toRemove(key === "" ? name : entry(key, name)),
    }));
