import { isDeepStrictEqual } from "node:util";
import { isProperties, Properties, Value } from "../../protocol/values";

const named = (value: Value): value is (Properties & { name: string })[] =>
  Array.isArray(value) &&
  value.every((item) => isProperties(item) && typeof item.name === "string");

/**
 * What an input has become, going by what changed in the cluster since it was last applied.
 *
 * An input and what the server made of it differ: it fills in defaults and writes quantities its
 * own way. So the object as it was is compared with the object as it is, and inputs follow only
 * where these two differ. Fields that are no inputs belong to others.
 */
export function refreshed(input: Value, before: Value, now: Value): Value {
  if (isDeepStrictEqual(before, now)) {
    return input;
  }
  if (isProperties(input) && isProperties(now)) {
    const then = isProperties(before) ? before : {};
    return Object.fromEntries(
      Object.entries(input).flatMap(([key, part]) => {
        const value = refreshed(part, then[key], now[key]);
        return value === undefined ? [] : [[key, value] as const];
      }),
    );
  }
  if (named(input) && named(before) && named(now)) {
    return input.flatMap((item) => {
      const find = (list: typeof now) => list.find(({ name }) => name === item.name);
      const value = refreshed(item, find(before), find(now));
      return value === undefined ? [] : [value];
    });
  }
  const lists = [input, before, now];
  if (lists.every(Array.isArray) && new Set(lists.map(({ length }) => length)).size === 1) {
    const [inputs, then, current] = lists as Value[][];
    return inputs?.map((item, index) => refreshed(item, then?.[index], current?.[index]));
  }
  return now;
}
