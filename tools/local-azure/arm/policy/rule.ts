import { Body } from "../resources/resource";

/** How one comparison of a rule has come out, as Azure shows it. */
export interface EvaluatedExpression {
  readonly result: "True" | "False";
  readonly expressionKind: "Field" | "Value";
  readonly expression: string;
  /** Where the field is in the resource. */
  readonly path?: string;
  /** Left out where the resource does not have it. */
  readonly expressionValue?: unknown;
  readonly targetValue: unknown;
  readonly operator: string;
}

interface Evaluation {
  readonly holds: boolean;
  readonly expressions: readonly EvaluatedExpression[];
}

/** A resource in ARM's shape, with its type as policies call it. */
export type Content = Body & { readonly type: string };

type Condition = Body & {
  readonly allOf?: Condition[];
  readonly anyOf?: Condition[];
  readonly not?: Condition;
};

const isNothing = (value: unknown): boolean => value === undefined || value === null;

/** Texts are compared case-insensitively. */
const isSame = (value: unknown, target: unknown): boolean =>
  !isNothing(value) && String(value).toLowerCase() === String(target).toLowerCase();

const isIn = (value: unknown, target: unknown): boolean =>
  (target as unknown[]).some((one) => isSame(value, one));

/** A star stands for any characters. */
const isLike = (value: unknown, target: unknown): boolean =>
  !isNothing(value) &&
  new RegExp(
    `^${String(target)
      .split("*")
      .map((part) => part.replaceAll(/[.+?^${}()|[\]\\/]/g, "\\$&"))
      .join(".*")}$`,
    "i",
  ).test(String(value));

/** @see https://learn.microsoft.com/azure/governance/policy/concepts/definition-structure-policy-rule */
const operators: Readonly<Record<string, (value: unknown, target: unknown) => boolean>> = {
  equals: isSame,
  notEquals: (value, target) => !isSame(value, target),
  in: isIn,
  notIn: (value, target) => !isIn(value, target),
  like: isLike,
  notLike: (value, target) => !isLike(value, target),
  exists: (value, target) => !isNothing(value) === isSame(true, target),
};

const operatorOf = (condition: Condition): string =>
  Object.keys(condition).find((key) => key in operators) ?? "";

/** Throws unless all of a condition is what the local Azure evaluates. */
export function checkCondition(condition: Condition): void {
  const { allOf, anyOf, not, ...rest } = condition;
  for (const one of [...(allOf ?? []), ...(anyOf ?? []), ...(not ? [not] : [])]) {
    checkCondition(one);
  }
  if (allOf ?? anyOf ?? not) return;
  const { field, value, ...others } = rest;
  if ((field === undefined) === (value === undefined) || Object.keys(others).length !== 1) {
    throw new Error("a condition is one of allOf, anyOf, not, or a field or value and an operator");
  }
  if (operatorOf(rest) === "") {
    throw new Error(
      `the local Azure knows the operators ${Object.keys(operators).join(", ")}, and not '${Object.keys(others).join()}'`,
    );
  }
  for (const one of Object.values(rest)) checkExpression(one);
}

/** Whether a condition holds for a resource. */
export function evaluate(
  condition: Condition,
  content: Content,
  parameters: Readonly<Record<string, unknown>>,
): Evaluation {
  const inner = (conditions: readonly Condition[]) =>
    conditions.map((one) => evaluate(one, content, parameters));
  const { allOf, anyOf, not } = condition;
  const parts = inner(allOf ?? anyOf ?? (not ? [not] : []));
  if (parts.length === 0) return compare(condition, content, parameters);
  const holding = parts.filter(({ holds }) => holds).length;
  return {
    holds: allOf ? holding === parts.length : anyOf ? holding > 0 : holding === 0,
    expressions: parts.flatMap(({ expressions }) => expressions),
  };
}

/** Of a list, as `a[*].b`, a comparison holds if it does so of each element. */
function compare(
  condition: Condition,
  content: Content,
  parameters: Readonly<Record<string, unknown>>,
): Evaluation {
  const scope: Scope = { parameters, field: (name) => one(fieldOf(content, name).values) };
  const operator = operatorOf(condition);
  const target = valueOf(condition[operator], scope);
  const isField = condition["field"] !== undefined;
  const name = String(valueOf(condition["field"], scope));
  const { path, values } = isField
    ? fieldOf(content, name)
    : { path: undefined, values: [valueOf(condition["value"], scope)] };
  const holds = values.every((value) => operators[operator]!(value, target));
  const expressionValue = one(values);
  return {
    holds,
    expressions: [
      {
        result: holds ? "True" : "False",
        expressionKind: isField ? "Field" : "Value",
        expression: isField ? name : String(condition["value"]),
        ...(path !== undefined && { path }),
        ...(!isNothing(expressionValue) && { expressionValue }),
        targetValue: target,
        operator: operator.replace(/^./, (letter) => letter.toUpperCase()),
      },
    ],
  };
}

const one = (values: readonly unknown[]): unknown => (values.length > 1 ? values : values[0]);

interface Field {
  readonly path: string;
  readonly values: readonly unknown[];
}

/** Aliases whose names are not those of the properties. */
const aliases: Readonly<Record<string, string>> = {
  "microsoft.compute/virtualmachines/sku.name": "properties.hardwareProfile.vmSize",
};

/** The value of a field: a property of every resource, a tag, or an alias, which begins with the type. */
function fieldOf(content: Content, name: string): Field {
  const [, tag] = /^tags\[['"]?(.+?)['"]?\]$/.exec(name) ?? /^tags\.(.+)$/.exec(name) ?? [];
  if (tag !== undefined) return { path: name, values: [at(content["tags"], tag)] };
  if (!name.includes("/")) return { path: name, values: [at(content, name)] };
  const known = aliases[name.toLowerCase()];
  const isOfType = name.toLowerCase().startsWith(`${content.type.toLowerCase()}/`);
  const alias = name.slice(content.type.length + 1);
  if (!isOfType || alias.includes("/")) return { path: name, values: [undefined] };
  const steps = (known ?? alias).split(".");
  const inside = valuesAt([content["properties"]], steps);
  return known === undefined && inside.some((value) => !isNothing(value))
    ? { path: `properties.${alias}`, values: inside }
    : { path: known ?? alias, values: valuesAt([content], steps) };
}

/** What is at a path; `[*]` stands for each element of a list. */
function valuesAt(values: readonly unknown[], steps: readonly string[]): readonly unknown[] {
  return steps.reduce<readonly unknown[]>((all, step) => {
    const found = all.map((value) => at(value, step.replace(/\[\*\]$/, "")));
    return step.endsWith("[*]")
      ? found.flatMap((list) => (list as unknown[] | undefined) ?? [])
      : found;
  }, values);
}

/** A property by its name in any case. Elements of lists have most of theirs under `properties`. */
function at(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  const key = Object.keys(value).find((one) => one.toLowerCase() === name.toLowerCase());
  if (key !== undefined) return (value as Body)[key];
  return name === "properties" ? undefined : at((value as Body)["properties"], name);
}

/** What the functions of a policy's expressions can ask for. */
interface Scope {
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
