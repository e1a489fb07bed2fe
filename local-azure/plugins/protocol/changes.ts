import type { Change } from "./protocol";
import { isProperties, isUnknown, Value } from "./values";

const joined = (path: string, key: string): string => {
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) {
    return `${path}["${key}"]`;
  }
  return path === "" ? key : `${path}.${key}`;
};

/** Every place where two values differ. A value that is not known yet counts as changed. */
export function changesBetween(
  before: Value,
  after: Value,
  replaces: (path: string, kind: Change["kind"]) => boolean,
  path = "",
): Change[] {
  const change = (kind: Change["kind"]): Change[] => [
    { path, kind, replaces: replaces(path, kind) },
  ];
  if (isProperties(before) && isProperties(after)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) =>
      changesBetween(before[key], after[key], replaces, joined(path, key)),
    );
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    return Array.from({ length: Math.max(before.length, after.length) }).flatMap((_, index) =>
      changesBetween(before[index], after[index], replaces, `${path}[${index}]`),
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
