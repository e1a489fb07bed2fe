/** What the functions of a policy's expressions can ask for. */
export interface Scope {
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The value of a field; undefined where the resource has none. */
  readonly field: (name: string) => unknown;
}

type Term =
  { readonly text: string } | { readonly call: string; readonly arguments: readonly Term[] };

const isExpression = (value: unknown): value is string =>
  typeof value === "string" && /^\[(?!\[).*\]$/s.test(value);

/** A value of a policy's rule: what its expression yields, as `[parameters('tagName')]`, else itself. */
export const valueOf = (value: unknown, scope: Scope): unknown =>
  isExpression(value) ? yieldOf(parse(value), scope) : value;

/** Throws unless each function of an expression is known here. */
export function checkExpression(value: unknown): void {
  if (isExpression(value)) parse(value);
}

function yieldOf(term: Term, scope: Scope): unknown {
  if ("text" in term) return term.text;
  return functions[term.call]!(
    term.arguments.map((one) => yieldOf(one, scope)),
    scope,
  );
}

const functions: Readonly<Record<string, (given: readonly unknown[], scope: Scope) => unknown>> = {
  concat: (given) => given.join(""),
  field: ([name], { field }) => field(String(name)),
  parameters: ([name], { parameters }) => parameters[String(name)],
};

/** Reads `[name('text', name(...))]`; a quote in a text is written twice. */
function parse(expression: string): Term {
  const tokens = expression.slice(1, -1).match(/'(?:[^']|'')*'|\w+|[(),]|\S/g) ?? [];
  const [term, ...rest] = [termOf(tokens), ...tokens];
  if (rest.length > 0) throw new Error(`there is more after its end: ${rest.join(" ")}`);
  return term;
}

function termOf(tokens: string[]): Term {
  const token = tokens.shift() ?? "";
  if (token.startsWith("'")) return { text: token.slice(1, -1).replaceAll("''", "'") };
  if (functions[token] === undefined) {
    throw new Error(
      `the local Azure knows the functions ${Object.keys(functions).join(", ")}, and not '${token}'`,
    );
  }
  const given: Term[] = [];
  for (let mark = tokens.shift(); mark !== ")"; mark = tokens.shift()) {
    if (mark !== "(" && mark !== ",") throw new Error(`a bracket of ${token} is missing`);
    if (mark === "(" && tokens[0] === ")") continue;
    given.push(termOf(tokens));
  }
  return { call: token, arguments: given };
}
