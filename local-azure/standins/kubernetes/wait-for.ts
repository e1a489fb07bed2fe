import { isProperties, Properties, Value } from "../protocol/values";
import { at, items, text } from "./objects";
import type { Judge } from "./readiness";

const expected =
  'expected "condition=Type", "condition=Type=Status", "jsonpath={.path}" or ' +
  '"jsonpath={.path}=value", or a JSON list of these';

/** Keys, indexes and `?(@.key=="value")` filters of a JSONPath as kubectl writes it. */
function steps(path: string): ((value: Value) => Value)[] {
  const token = /\.((?:\\\.|[^.[\]])+)|\[(\d+)\]|\[\?\(@\.([\w.]+)\s*==\s*["']([^"']*)["']\)\]/gy;
  const found: ((value: Value) => Value)[] = [];
  while (token.lastIndex < path.length) {
    const match = token.exec(path);
    if (!match) {
      throw new Error(
        `pulumi.com/waitFor has the path {${path}}, which is beyond this provider: ${expected}`,
      );
    }
    const [, key, index, filterKey, filterValue] = match;
    if (key !== undefined) {
      found.push((value) => (isProperties(value) ? value[key.replaceAll("\\.", ".")] : undefined));
    } else if (index !== undefined) {
      found.push((value) => (Array.isArray(value) ? value[Number(index)] : undefined));
    } else {
      const keys = (filterKey ?? "").split(".");
      found.push((value) => items(value).find((item) => String(at(item, ...keys)) === filterValue));
    }
  }
  return found;
}

function one(expression: string): Judge {
  const [, type, status = "True"] = /^condition=([^=]+)(?:=(.+))?$/.exec(expression) ?? [];
  if (type !== undefined) {
    return (object: Properties) => {
      const has = items(at(object, "status", "conditions")).find((entry) => entry.type === type);
      const is = text(has?.status) || "not there";
      return is.toLowerCase() === status.toLowerCase()
        ? undefined
        : `its condition ${type} is ${is}, and ${status} is waited for`;
    };
  }
  const [, braced, bare, wanted] =
    /^jsonpath=["']?(?:\{([^}]*)\}|(\.[^="']*))["']?(?:=(.*))?$/.exec(expression) ?? [];
  const path = braced ?? bare;
  if (path === undefined) {
    throw new Error(`pulumi.com/waitFor is ${JSON.stringify(expression)}: ${expected}`);
  }
  const walk = steps(path);
  return (object) => {
    const value = walk.reduce<Value>((part, step) => step(part), object);
    if (wanted === undefined ? value !== undefined : String(value) === wanted) {
      return undefined;
    }
    const is = value === undefined ? "not there" : JSON.stringify(value);
    return `its ${path} is ${is}${wanted === undefined ? "" : `, and ${wanted} is waited for`}`;
  };
}

/**
 * The annotation `pulumi.com/waitFor`: one expression, or a JSON list of them that must all hold.
 */
export function waitedFor(annotation: string): Judge {
  const judges = listed(annotation).map(one);
  return (object) =>
    judges.reduce<string | undefined>((flaw, judge) => flaw ?? judge(object), undefined);
}

function listed(annotation: string): string[] {
  if (!annotation.trimStart().startsWith("[")) {
    return [annotation];
  }
  try {
    return (JSON.parse(annotation) as unknown[]).map(String);
  } catch {
    throw new Error(`pulumi.com/waitFor is ${JSON.stringify(annotation)}: ${expected}`);
  }
}
