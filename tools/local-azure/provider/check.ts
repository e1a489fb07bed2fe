import { isDeepStrictEqual } from "node:util";

import { idTemplates } from "../../recover/azure";
import { ResourceManager } from "../arm/resource-manager";
import { account, subscriptionPath } from "../arm/resources/resource";
import { normalLocation } from "../arm/subscription/regions";
import { ResourceType, schemaOf } from "../arm/types/resource-type";
import {
  changesBetween,
  type CheckRequest,
  type CheckResult,
  type DiffRequest,
  type DiffResult,
} from "../plugins/protocol/protocol";
import { isProperties, isUnknown, Properties, unknown, Value } from "../plugins/protocol/values";

interface CheckContext {
  readonly arm: ResourceManager;
  /** Of the provider's configuration. */
  readonly location?: string;
}

/** Adds location and API version, and reports missing required properties. */
export function check(
  type: ResourceType,
  { olds, news }: CheckRequest,
  context: CheckContext,
): CheckResult {
  const inputs: Properties = { ...news };
  const schema = schemaOf(type);
  const isLocated = schema.inputs.includes("location");
  if (isLocated && isAbsent(inputs["location"])) {
    const location = defaultLocation(olds, inputs, context);
    if (location !== undefined) inputs["location"] = location;
  }
  if (isAbsent(inputs["azureApiVersion"])) inputs["azureApiVersion"] = schema.apiVersion;

  const required = [
    ...pathParameters(type),
    ...schema.required,
    ...(isLocated ? ["location"] : []),
  ];
  const failures = [...new Set(required)]
    .filter((path) => isMissing(inputs, path.split(".")))
    .map((path) => ({ property: "", reason: missing(type, path) }));
  return { inputs, failures };
}

const isAbsent = (value: Value): boolean => value === undefined || value === null;

function missing(type: ResourceType, path: string): string {
  switch (path) {
    case nameParameter(type):
      return `only the official plugin makes up a name: set '${path}'`;
    case "location":
      return "missing required property 'location'. Either set it explicitly or configure it with 'pulumi config set azure-native:location <value>'.";
    default:
      return `missing required property '${path}'`;
  }
}

function isMissing(within: Value, [key, ...rest]: readonly string[]): boolean {
  if (key === undefined) return isAbsent(within);
  // An unknown value may contain it.
  if (isUnknown(within)) return false;
  return !isProperties(within) || isMissing(within[key], rest);
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
  const { forceNew = [], identifiers = {} } = type;
  const { defaults } = schemaOf(type);
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
  return { changes, deleteBeforeReplace: changes.some(({ replaces }) => replaces) };
}

/** Inputs in the one spelling of several that Azure takes. */
function comparable(inputs: Properties): Properties {
  const { location, resourceGroupName } = inputs;
  return {
    ...inputs,
    ...(typeof location === "string" && { location: normalLocation(location) }),
    ...(typeof resourceGroupName === "string" && {
      resourceGroupName: resourceGroupName.toLowerCase(),
    }),
  };
}

type Named = Pick<ResourceType, "token">;

/** The parameters of a path that a program sets: all but the subscription. */
export const pathParameters = ({ token }: Named): string[] =>
  [...idTemplates[token]!.matchAll(/\{(\w+)\}/g)].flatMap(([, name]) =>
    name === undefined || name === "subscriptionId" ? [] : [name],
  );

/** The parameter that is the resource's own name. */
const nameParameter = (type: Named): string => pathParameters(type).at(-1)!;

export function idOf({ token }: Named, inputs: Properties): string {
  const filled = idTemplates[token]!.replace(/\{(\w+)\}/g, (_, name: string) =>
    name === "subscriptionId"
      ? account.subscriptionId
      : String(inputs[name]).replace(/^\/+|\/+$/g, ""),
  );
  return filled.replace(/^\/+/, "/");
}

/** The path parameters in an id, for an import. */
export function parametersOf({ token }: Named, id: string): Properties {
  const path = idTemplates[token]!;
  const pattern = path.replace(/\/?\{(\w+)\}/g, (_, name: string) =>
    name === "scope" ? "(?<scope>/.+)" : `/(?<${name}>[^/]+)`,
  );
  const groups = new RegExp(`^${pattern}$`, "i").exec(id)?.groups;
  if (groups === undefined) {
    throw new Error(`${id} is not an id of ${token}; expected the form ${path}`);
  }
  const { subscriptionId: _, ...parameters } = groups;
  return { ...parameters };
}
