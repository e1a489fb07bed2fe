import { CheckRequest, CheckResult } from "../protocol";
import { hasUnknown, isProperties, Properties } from "../protocol/values";
import { Discovery } from "./discovery";
import { withName } from "./naming";
import { at, kindOfType, marked, nameOf, normalised, text } from "./objects";
import { judgeOf } from "./readiness";
import { isNamespaced } from "./scopes";

interface Failure {
  readonly property: string;
  readonly reason: string;
}

/** What only the provider knows, asked for where it matters. */
export interface Surroundings {
  readonly namespace: () => Promise<string>;
  readonly discovery: () => Promise<Pick<Discovery, "find">>;
}

async function scopeOf(
  apiVersion: string,
  kind: string,
  discovery: Surroundings["discovery"],
): Promise<boolean | undefined> {
  const known = isNamespaced(apiVersion, kind);
  if (known !== undefined) {
    return known;
  }
  try {
    return (await (await discovery()).find(apiVersion, kind)).namespaced;
  } catch {
    // Its definition may be among what this run creates; the namespace is filled in then.
    return undefined;
  }
}

async function inNamespace(inputs: Properties, around: Surroundings): Promise<Properties> {
  const { metadata, apiVersion, kind } = inputs;
  if (!isProperties(metadata)) {
    return inputs;
  }
  const namespaced = await scopeOf(text(apiVersion), text(kind), around.discovery);
  if (namespaced === false) {
    const { namespace: _none, ...rest } = metadata;
    return { ...inputs, metadata: rest };
  }
  if (namespaced === undefined || metadata.namespace !== undefined) {
    return inputs;
  }
  return { ...inputs, metadata: { ...metadata, namespace: await around.namespace() } };
}

function failuresOf(inputs: Properties, isPatch: boolean): Failure[] {
  const kind = text(inputs.kind);
  const failures: Failure[] = [];
  if (isPatch && nameOf(inputs) === "") {
    failures.push({
      property: "metadata.name",
      reason: "a Patch resource must name the object that it changes in metadata.name",
    });
  }
  if (at(inputs, "metadata", "generateName") !== undefined) {
    failures.push({
      property: "metadata.generateName",
      reason:
        "server-side apply needs a name: give metadata.name, or leave both out to be given one",
    });
  }
  if (kind.endsWith("List") && Array.isArray(inputs.items)) {
    failures.push({
      property: "kind",
      reason: `a ${kind} is no object: make a resource of each of its items`,
    });
  }
  try {
    judgeOf(inputs);
  } catch (error) {
    failures.push({ property: "metadata.annotations", reason: (error as Error).message });
  }
  return failures;
}

/**
 * Inputs as they are compared and applied: with kind, name and namespace, and each thing written in
 * one way.
 */
export async function checked(request: CheckRequest, around: Surroundings): Promise<CheckResult> {
  const { isPatch, ...kind } = kindOfType(request.type);
  const given = normalised({ ...kind, ...request.news });
  const failures = hasUnknown(at(given, "metadata", "annotations"))
    ? []
    : failuresOf(given, isPatch);
  const named = isPatch || at(given, "metadata", "generateName") ? given : withName(request, given);
  return { inputs: marked(await inNamespace(named, around)), failures };
}
