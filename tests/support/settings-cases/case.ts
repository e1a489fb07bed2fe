import { access, Values } from "../stack";

/** A change to valid settings, and a part of its message. */
export type Refused = readonly [flaw: string, values: Values, says: string];

export type Accepted = readonly [merit: string, values: Values];

export interface Cases {
  readonly refused: readonly Refused[];
  readonly accepted: readonly Accepted[];
}

const wordsOf = (command: string): string[] =>
  [...command.matchAll(/'((?:[^']|'\\'')*)'|"\$\(cat [^)]*\)"|(\S+)/g)].map(
    ([whole, quoted]) => quoted?.replaceAll("'\\''", "'") ?? whole,
  );

const stepsOf = (path: string): string[] =>
  [...path.matchAll(/\["([^"]+)"\]|\[(\d+)\]|([^.[\]]+)/g)].map(
    ([, quoted, index, name]) => quoted ?? index ?? name!,
  );

const typed = (text: string): unknown =>
  /^(true|false|-?\d+)$/.test(text) ? JSON.parse(text) : text;

const resolved = (text: string): unknown =>
  text.startsWith('"$(cat') ? access.sshPublicKey : text;

/** What a user types in where Pulumi asks for a value. */
const typedIn = (path: string): string =>
  path.startsWith("httpProxy.") ? "http://me:typed@proxy.example:3128" : "typed in";

/**
 * A stack's values after the command was typed, which is `pulumi config set` or `pulumi config rm`.
 */
export function after(command: string, values: Values): Values {
  const [program, noun, verb, ...words] = wordsOf(command);
  expect([program, noun]).toEqual(["pulumi", "config"]);
  const asText = words.includes("--type");
  const hasPath = words.includes("--path");
  const [path = "", value = typedIn(path)] = words.filter(
    (word, index) => !word.startsWith("--") && words[index - 1] !== "--type",
  );
  const result: Values = JSON.parse(JSON.stringify(values));
  const steps = hasPath ? stepsOf(path) : [path];
  let place: any = result;
  for (const [index, step] of steps.slice(0, -1).entries()) {
    place[step] ??= /^\d+$/.test(steps[index + 1]!) ? [] : {};
    place = place[step];
  }
  const last = steps.at(-1)!;
  if (verb === "rm") {
    if (Array.isArray(place)) place.splice(Number(last), 1);
    else delete place[last];
  } else {
    place[last] = hasPath && !asText ? typed(value) : resolved(value);
  }
  return result;
}
