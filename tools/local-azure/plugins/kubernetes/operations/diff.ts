import { changesBetween } from "../../protocol/changes";
import { DiffRequest, DiffResult } from "../../protocol/protocol";
import { isProperties, Properties, Value } from "../../protocol/values";
import { kindOf } from "../kinds";
import { at, kindOfType, nameOf } from "../objects";

/** What would change of the object as it was seen last, and whether that takes a new one. */
export function difference({ type, olds, news, state }: DiffRequest): DiffResult {
  const before = pruned(state, olds) as Properties;
  const fixed = [
    "metadata.name",
    "metadata.namespace",
    "kind",
    ...(kindOfType(type).isPatch ? [] : kindOf(news).fixed),
  ];
  const changes = changesBetween(before, news, {
    replaces: (path) =>
      fixed.some(
        (part) => path === part || path.startsWith(`${part}.`) || path.startsWith(`${part}[`),
      ),
  });
  return {
    changes,
    // Two objects of one name cannot be there at once.
    deleteBeforeReplace:
      changes.some(({ replaces }) => replaces) &&
      nameOf(news) === nameOf(state) &&
      at(news, "metadata", "namespace") === at(before, "metadata", "namespace"),
  };
}

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
