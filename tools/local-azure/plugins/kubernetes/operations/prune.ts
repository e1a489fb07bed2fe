import { isProperties, Value } from "../../protocol/values";

const isEmpty = (value: Value): boolean =>
  isProperties(value) || Array.isArray(value) ? Object.keys(value).length === 0 : !value;

/**
 * Of an object as the cluster has it, what the inputs name: the rest is the server's, or somebody
 * else's. Items of lists are told apart by their place alone, as the official plugin does: what
 * somebody adds behind the program's own is not seen, and what comes to stand before them is taken
 * for a change. The server leaves out what is empty.
 */
export function pruned(live: Value, inputs: Value): Value {
  if (isProperties(live) && isProperties(inputs)) {
    return Object.fromEntries(
      Object.entries(inputs).flatMap(([key, input]) => {
        if (live[key] !== undefined) return [[key, pruned(live[key], input)] as const];
        return isEmpty(input) ? [[key, input] as const] : [];
      }),
    );
  }
  if (Array.isArray(live) && Array.isArray(inputs)) {
    return live.slice(0, inputs.length).map((item, index) => pruned(item, inputs[index]));
  }
  return live;
}
