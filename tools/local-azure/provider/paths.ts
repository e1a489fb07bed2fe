import { idTemplates } from "../../recover/azure";
import { account } from "../arm/resources/ids";
import { ResourceType } from "../arm/types/resource-type";
import type { Properties } from "../plugins/protocol/values";

type Named = Pick<ResourceType, "token">;

/** The parameters of a path that a program sets: all but the subscription. */
export const pathParameters = ({ token }: Named): string[] =>
  [...idTemplates[token]!.matchAll(/\{(\w+)\}/g)].flatMap(([, name]) =>
    name === undefined || name === "subscriptionId" ? [] : [name],
  );

/** The parameter that is the resource's own name. */
export const nameParameter = (type: Named): string => pathParameters(type).at(-1)!;

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
