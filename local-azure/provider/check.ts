import { createHash } from "node:crypto";

import { Cloud } from "../resource-manager/cloud";
import { subscriptionPath } from "../resource-manager/ids";
import { ResourceType } from "../resource-manager/resource-type";
import type { CheckRequest, CheckResult } from "../standins/protocol";
import { isProperties, isUnknown, Properties, unknown, Value } from "../standins/protocol/values";
import { nameParameter, pathParameters } from "./paths";

/** With it in the inputs, a replacement is created before the old one is deleted: a random name allows that. */
export const createBeforeDelete = "__createBeforeDelete";

interface Surroundings {
  readonly cloud: Cloud;
  /** Of the provider's configuration. */
  readonly location?: string;
}

/** Fills in name, location and API version, and tells what is missing. */
export function check(
  type: ResourceType,
  { olds, news, name, seed }: CheckRequest,
  surroundings: Surroundings,
): CheckResult {
  const inputs: Properties = { ...news };
  const own = nameParameter(type);
  if (absent(inputs[own])) {
    if (!absent(olds[own])) {
      inputs[own] = olds[own];
      if (olds[createBeforeDelete] === true) inputs[createBeforeDelete] = true;
    } else {
      inputs[own] = inventedName(type, name, seed);
      if (type.autoName !== "copy") inputs[createBeforeDelete] = true;
    }
  }
  const isLocated = type.inputs.includes("location");
  if (isLocated && absent(inputs["location"])) {
    const location = defaultLocation(olds, inputs, surroundings);
    if (location !== undefined) inputs["location"] = location;
  }
  if (absent(inputs["azureApiVersion"])) inputs["azureApiVersion"] = type.apiVersion;

  const required = [...pathParameters(type), ...type.required, ...(isLocated ? ["location"] : [])];
  const failures = [...new Set(required)]
    .filter((path) => isMissing(inputs, path.split(".")))
    .map((path) => ({ property: "", reason: missing(path) }));
  return { inputs, failures };
}

const absent = (value: Value): boolean => value === undefined || value === null;

const missing = (path: string): string =>
  path === "location"
    ? "missing required property 'location'. Either set it explicitly or configure it with 'pulumi config set azure-native:location <value>'."
    : `missing required property '${path}'`;

function isMissing(within: Value, [key, ...rest]: readonly string[]): boolean {
  if (key === undefined) return absent(within);
  // What is not known yet may hold it; what was left out altogether is told by its own path.
  if (isUnknown(within)) return false;
  return !isProperties(within) || isMissing(within[key], rest);
}

function inventedName(type: ResourceType, name: string, seed: Uint8Array): string {
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
  { cloud, location }: Surroundings,
): Value {
  if (!absent(olds["location"])) return olds["location"];
  if (location !== undefined) return location;
  const group = inputs["resourceGroupName"];
  if (isUnknown(group)) return unknown;
  if (typeof group !== "string") return undefined;
  return cloud.peek(`${subscriptionPath}/resourceGroups/${group}`)?.["location"] as
    string | undefined;
}
