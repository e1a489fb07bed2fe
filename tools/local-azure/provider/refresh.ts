import { isDeepStrictEqual } from "node:util";

import { Body } from "../arm/resources/resource";
import { ResourceType, withoutReadOnly } from "../arm/types/resource-type";
import { schemaOf } from "../arm/types/schema";
import { isProperties, Properties, Value } from "../plugins/protocol/values";

/** The properties in the outputs that are inputs. */
export function inputsIn(type: ResourceType, outputs: Properties): Properties {
  const inputs = Object.entries(outputs).filter(([key]) => schemaOf(type).inputs.includes(key));
  const body: Body = withoutReadOnly(type, Object.fromEntries(inputs));
  return (type.toInputs?.(body) ?? body) as Properties;
}

/**
 * Inputs after a refresh: the old ones, plus the changes in Azure since the last state.
 *
 * Inputs cannot be derived from outputs alone, since many of these are defaults. A property that
 * changed between two states is not a default.
 */
export function refreshedInputs(
  type: ResourceType,
  inputs: Properties,
  before: Properties,
  after: Properties,
): Properties {
  const separate = separateIn(type, inputs);
  const own = Object.fromEntries(Object.entries(after).filter(([key]) => !separate.includes(key)));
  return applyChanges(inputs, inputsIn(type, before), inputsIn(type, own));
}

/** Rules and subnets that are resources of their own are not inputs of their parent. */
const separateIn = ({ maintainIfUnset = [] }: ResourceType, inputs: Properties): string[] =>
  maintainIfUnset.filter((list) => inputs[list] === undefined);

/** Outputs after a refresh, with no rules and subnets that are resources of their own. */
export const withoutSeparate = (
  type: ResourceType,
  inputs: Properties,
  outputs: Properties,
): Properties => ({
  ...outputs,
  ...Object.fromEntries(separateIn(type, inputs).map((list) => [list, []])),
});

function applyChanges(base: Properties, before: Properties, after: Properties): Properties {
  const result = { ...base };
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, now] = [before[key], after[key]];
    if (isDeepStrictEqual(old, now)) continue;
    if (now === undefined) delete result[key];
    else if (old === undefined || base[key] === undefined) result[key] = now;
    else result[key] = applyChange(base[key], old, now);
  }
  return result;
}

function applyChange(base: Value, before: Value, after: Value): Value {
  if (isProperties(base) && isProperties(before) && isProperties(after))
    return applyChanges(base, before, after);
  if (Array.isArray(base) && Array.isArray(before) && Array.isArray(after)) {
    return after.map((element, index) =>
      index < base.length && index < before.length
        ? applyChange(base[index], before[index], element)
        : element,
    );
  }
  return isDeepStrictEqual(before, after) ? base : after;
}
