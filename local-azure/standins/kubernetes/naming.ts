import { createHash, randomBytes } from "node:crypto";
import { CheckRequest } from "../protocol";
import { isProperties, isUnknown, Properties } from "../protocol/values";
import { annotation, managerKey, nameOf, text } from "./objects";

const digest = (of: string | Uint8Array): string =>
  createHash("sha256").update(of).digest("hex").slice(0, 8);

/**
 * Under which name a resource's fields are applied. As with the official plugin, it is another one whenever the
 * state knows none: whoever makes an object again meets the fields of whoever made it before.
 */
export const managerOf = (inputs: Properties, state: Properties): string =>
  annotation(inputs, "patchFieldManager") ||
  text(state[managerKey]) ||
  `pulumi-kubernetes-${randomBytes(4).toString("hex")}`;

const autonamed = "pulumi.com/autonamed";

/**
 * Gives a name to an object that has none, the same one as long as the object is not replaced.
 *
 * The engine leaves the old inputs out when it replaces, so a replacement has a name of its own.
 */
export function withName(request: CheckRequest, inputs: Properties): Properties {
  const metadata = inputs.metadata ?? {};
  if (!isProperties(metadata) || metadata.name !== undefined) {
    return inputs;
  }
  const annotations = metadata.annotations ?? {};
  if (!isProperties(annotations) || isUnknown(annotations)) {
    return inputs;
  }
  const kept = annotation(request.olds, "autonamed") === "true" ? nameOf(request.olds) : "";
  const seed = request.seed.length > 0 ? request.seed : request.urn;
  return {
    ...inputs,
    metadata: {
      ...metadata,
      name: kept || `${request.name.toLowerCase()}-${digest(seed)}`,
      annotations: { ...annotations, [autonamed]: "true" },
    },
  };
}
