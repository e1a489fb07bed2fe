import { account } from "../arm/resources/ids";
import { ResourceType } from "../arm/types/resource-type";
import type { Properties } from "../plugins/protocol/values";

/** The parameters of a path that a program sets: all but the subscription. */
export const pathParameters = ({ path }: Pick<ResourceType, "path">): string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].flatMap(([, name]) =>
    name === undefined || name === "subscriptionId" ? [] : [name],
  );

/** The parameter that is the resource's own name. */
export const nameParameter = (type: ResourceType): string => pathParameters(type).at(-1)!;

export function idOf({ path }: Pick<ResourceType, "path">, inputs: Properties): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    name === "subscriptionId"
      ? account.subscriptionId
      : String(inputs[name]).replace(/^\/+|\/+$/g, ""),
  );
  return filled.replace(/^\/+/, "/");
}

/** The path parameters in an id, for an import. */
export function parametersOf(type: ResourceType, id: string): Properties {
  const pattern = type.path.replace(/\/?\{(\w+)\}/g, (_, name: string) =>
    name === "scope" ? "(?<scope>/.+)" : `/(?<${name}>[^/]+)`,
  );
  const groups = new RegExp(`^${pattern}$`, "i").exec(id)?.groups;
  if (groups === undefined) {
    throw new Error(`${id} is not an id of ${type.token}; expected the form ${type.path}`);
  }
  const { subscriptionId: _, ...parameters } = groups;
  return { ...parameters };
}
