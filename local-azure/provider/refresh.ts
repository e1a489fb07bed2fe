import { isDeepStrictEqual } from "node:util";

import { withoutReadOnly } from "../resource-manager/read-only";
import { Body, ResourceType } from "../resource-manager/resource-type";
import { isProperties, Properties, Value } from "../standins/protocol/values";

/** Of what Azure shows, what a program could have asked for. */
export function projected(type: ResourceType, outputs: Properties): Properties {
  const inputs = Object.entries(outputs).filter(([key]) => type.inputs.includes(key));
  const body: Body = withoutReadOnly(type, Object.fromEntries(inputs));
  return (type.toInputs?.(body) ?? body) as Properties;
}

/**
 * Inputs after a refresh: what they were, and on top of that what changed in Azure since.
 *
 * Inputs cannot be read back: much of what Azure shows are defaults that nobody asked for. What changed
 * between two looks at a resource is taken for no default any more.
 */
export function refreshedInputs(
  type: ResourceType,
  inputs: Properties,
  before: Properties,
  after: Properties,
): Properties {
  // Rules and subnets that are resources of their own are not the group's or the network's to ask for.
  const foreign = (type.maintained ?? []).filter((list) => inputs[list] === undefined);
  const visible = Object.fromEntries(
    Object.entries(after).filter(([key]) => !foreign.includes(key)),
  );
  return applied(inputs, projected(type, before), projected(type, visible));
}

function applied(base: Properties, before: Properties, after: Properties): Properties {
  const result = { ...base };
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, now] = [before[key], after[key]];
    if (isDeepStrictEqual(old, now)) continue;
    if (now === undefined) delete result[key];
    else if (old === undefined || base[key] === undefined) result[key] = now;
    else result[key] = appliedValue(base[key], old, now);
  }
  return result;
}

function appliedValue(base: Value, before: Value, after: Value): Value {
  if (isProperties(base) && isProperties(before) && isProperties(after))
    return applied(base, before, after);
  if (Array.isArray(base) && Array.isArray(before) && Array.isArray(after)) {
    return after.map((element, index) =>
      index < base.length && index < before.length
        ? appliedValue(base[index], before[index], element)
        : element,
    );
  }
  return isDeepStrictEqual(before, after) ? base : after;
}
