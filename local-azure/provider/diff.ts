import { normalLocation } from "../resource-manager/regions";
import { ResourceType } from "../resource-manager/resource-type";
import type { DiffResult } from "../standins/protocol";
import { changesBetween } from "../standins/protocol/changes";
import type { Properties } from "../standins/protocol/values";
import { createBeforeDelete } from "./check";
import { pathParameters } from "./paths";

/**
 * Compares what the program asked for before with what it asks for now.
 *
 * A changed name or parent replaces, and a few properties do. Everything else is an update, also what Azure
 * will refuse to update: a program has to say `replaceOnChanges` itself.
 */
export function diff(type: ResourceType, olds: Properties, news: Properties): DiffResult {
  const replacing = new Set([...pathParameters(type), ...(type.forceNew ?? [])]);
  const changes = changesBetween(sameLocation(olds), sameLocation(news), (path) =>
    replacing.has(path.split(/[.[]/)[0] ?? path),
  );
  const replaces = changes.some((change) => change.replaces);
  return { changes, deleteBeforeReplace: replaces && olds[createBeforeDelete] !== true };
}

/** Azure reads `West Europe` as `westeurope`. */
const sameLocation = (inputs: Properties): Properties =>
  typeof inputs["location"] === "string"
    ? { ...inputs, location: normalLocation(inputs["location"]) }
    : inputs;
