import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

import { ResourceManager } from "../arm/resource-manager";
import { subscriptionPath } from "../arm/resources/ids";
import { ResourceType } from "../arm/types/resource-type";
import { normalLocation } from "../arm/subscription/regions";
import { changesBetween } from "../plugins/protocol/changes";
import type {
  CheckRequest,
  CheckResult,
  DiffRequest,
  DiffResult,
} from "../plugins/protocol/protocol";
import { isProperties, isUnknown, Properties, unknown, Value } from "../plugins/protocol/values";
import { nameParameter, pathParameters } from "./paths";

/**
 * With this input, a replacement is created before the old resource is deleted, which a generated
 * name allows.
 */
const createBeforeDelete = "__createBeforeDelete";

interface CheckContext {
  readonly arm: ResourceManager;
  /** Of the provider's configuration. */
  readonly location?: string;
}

/** Adds name, location and API version, and reports missing required properties. */
export function check(
  type: ResourceType,
  { olds, news, name, seed }: CheckRequest,
  context: CheckContext,
): CheckResult {
  const inputs: Properties = { ...news };
  const own = nameParameter(type);
  if (isAbsent(inputs[own])) {
    if (!isAbsent(olds[own])) {
      inputs[own] = olds[own];
      if (olds[createBeforeDelete] === true) inputs[createBeforeDelete] = true;
    } else {
      inputs[own] = generatedName(type, name, seed);
      if (type.autoName !== "copy") inputs[createBeforeDelete] = true;
    }
  }
  const isLocated = type.inputs.includes("location");
  if (isLocated && isAbsent(inputs["location"])) {
    const location = defaultLocation(olds, inputs, context);
    if (location !== undefined) inputs["location"] = location;
  }
  if (isAbsent(inputs["azureApiVersion"])) inputs["azureApiVersion"] = type.apiVersion;

  const required = [...pathParameters(type), ...type.required, ...(isLocated ? ["location"] : [])];
  const failures = [...new Set(required)]
    .filter((path) => isMissing(inputs, path.split(".")))
    .map((path) => ({ property: "", reason: missing(path) }));
  return { inputs, failures };
}

const isAbsent = (value: Value): boolean => value === undefined || value === null;

const missing = (path: string): string =>
  path === "location"
    ? "missing required property 'location'. Either set it explicitly or configure it with 'pulumi config set azure-native:location <value>'."
    : `missing required property '${path}'`;

function isMissing(within: Value, [key, ...rest]: readonly string[]): boolean {
  if (key === undefined) return isAbsent(within);
  // An unknown value may contain it.
  if (isUnknown(within)) return false;
  return !isProperties(within) || isMissing(within[key], rest);
}

function generatedName(type: ResourceType, name: string, seed: Uint8Array): string {
  if (type.autoName === "copy") return name;
  const digits = createHash("sha256").update(seed).update(name).digest("hex");
  if (type.autoName === "random") return `${name}${digits.slice(0, 8)}`;
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    digits.slice(12, 16),
    digits.slice(16, 20),
    digits.slice(20, 32),
  ].join("-");
}

function defaultLocation(
  olds: Properties,
  inputs: Properties,
  { arm, location }: CheckContext,
): Value {
  if (!isAbsent(olds["location"])) return olds["location"];
  if (location !== undefined) return location;
  const group = inputs["resourceGroupName"];
  if (isUnknown(group)) return unknown;
  if (typeof group !== "string") return undefined;
  return arm.peek(`${subscriptionPath}/resourceGroups/${group}`)?.["location"] as
    string | undefined;
}

/**
 * Compares the old inputs of a program with the new ones.
 *
 * A changed name, parent or `forceNew` property replaces. Everything else is an update, also what
 * Azure does not allow to change: the program has to set `replaceOnChanges` itself. A property that is
 * added with the value that Azure has given it by itself replaces nothing, and with its default it is no
 * change.
 */
export function diff(
  type: ResourceType,
  { olds, news, state }: Pick<DiffRequest, "olds" | "news" | "state">,
): DiffResult {
  const { forceNew = [], defaults = {}, identifiers = {} } = type;
  const replacing = new Set([...pathParameters(type), ...forceNew]);
  const isAddedAs = (known: Properties, path: string, kind: string): boolean =>
    kind === "add" && path in known && isDeepStrictEqual(news[path], known[path]);
  const changes = changesBetween(comparable(olds), comparable(news), {
    identifierOf: (path) => identifiers[path],
    // A part that comes into a property or goes from it is an update, and so is an array's element.
    replaces: (path, kind) =>
      replacing.has(kind === "update" ? path.replace(/\..*$/s, "") : path) &&
      !isAddedAs(state, path, kind),
  }).filter(({ path, kind }) => !isAddedAs(defaults, path, kind));
  const replaces = changes.some((change) => change.replaces);
  return { changes, deleteBeforeReplace: replaces && olds[createBeforeDelete] !== true };
}

/** Inputs without azure-native's own marks, in the one spelling of several that Azure takes. */
function comparable(inputs: Properties): Properties {
  const { location, resourceGroupName } = inputs;
  return {
    ...Object.fromEntries(Object.entries(inputs).filter(([key]) => !key.startsWith("__"))),
    ...(typeof location === "string" && { location: normalLocation(location) }),
    ...(typeof resourceGroupName === "string" && {
      resourceGroupName: resourceGroupName.toLowerCase(),
    }),
  };
}
