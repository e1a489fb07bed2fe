import type { Change } from "./protocol";
import { isProperties, isUnknown, Value } from "./values";

const joined = (path: string, key: string): string => {
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) {
    return `${path}["${key}"]`;
  }
  return path === "" ? key : `${path}.${key}`;
};

interface Rules {
  replaces(path: string, kind: Change["kind"]): boolean;
  /**
   * The property by which the elements of an array are told apart, wherever they are in it; its path is
   * without indices.
   *
   * @default their places
   */
  identifierOf?(path: string): string | undefined;
}

/** Every place where two values differ. A value that is not known yet counts as changed. */
export function changesBetween(before: Value, after: Value, rules: Rules, path = ""): Change[] {
  const change = (kind: Change["kind"]): Change[] => [
    { path, kind, replaces: rules.replaces(path, kind) },
  ];
  if (isProperties(before) && isProperties(after)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) =>
      changesBetween(before[key], after[key], rules, joined(path, key)),
    );
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const identifier = rules.identifierOf?.(path.replaceAll(/\[\d+\]/g, ""));
    return pairsOf(before, after, identifier).flatMap(([old, now, index]) =>
      changesBetween(old, now, rules, `${path}[${index}]`),
    );
  }
  const absentBefore = before === undefined || before === null;
  const absentAfter = after === undefined || after === null;
  if (absentBefore || absentAfter) {
    if (absentBefore && absentAfter) {
      return [];
    }
    return change(absentBefore ? "add" : "delete");
  }
  return before === after && !isUnknown(after) ? [] : change("update");
}

/** Elements of two arrays that are the same thing, and where that is. */
function pairsOf(
  before: readonly Value[],
  after: readonly Value[],
  identifier: string | undefined,
): (readonly [old: Value, now: Value, index: number])[] {
  if (identifier === undefined) {
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, index) => [before[index], after[index], index] as const);
  }
  const keyOf = (element: Value) => (isProperties(element) ? element[identifier] : undefined);
  const partner = (element: Value, others: readonly Value[]) =>
    others.findLast((other) => keyOf(other) === keyOf(element));
  return [
    ...after.map((now, index) => [partner(now, before), now, index] as const),
    ...before
      .map((old, index) => [old, undefined, index] as const)
      .filter(([old]) => partner(old, after) === undefined),
  ];
}
