import { createHash } from "node:crypto";
import { CheckRequest, CheckResult } from "../../protocol/protocol";
import { hasUnknown, isProperties, isUnknown, Properties } from "../../protocol/values";
import { Discovery } from "../api/discovery";
import {
  annotation,
  at,
  groupOf,
  kindOfType,
  marked,
  nameOf,
  normalised,
  text,
  without,
} from "../objects";
import { readinessRuleOf } from "../await/readiness";
import { isNamespaced } from "../api/discovery";

interface Failure {
  readonly property: string;
  readonly reason: string;
}

/** What only the provider knows, asked for where it matters. */
export interface Surroundings {
  readonly namespace: () => Promise<string>;
  readonly discovery: () => Promise<Pick<Discovery, "find">>;
  /** Whether the kinds of the program's own CustomResourceDefinitions have namespaces, by group and kind. */
  readonly definedKinds: Map<string, boolean>;
}

async function scopeOf(
  apiVersion: string,
  kind: string,
  { discovery, definedKinds }: Surroundings,
): Promise<boolean> {
  const known =
    isNamespaced(apiVersion, kind) ?? definedKinds.get(`${groupOf(apiVersion)}/${kind}`);
  if (known !== undefined) {
    return known;
  }
  try {
    return (await (await discovery()).find(apiVersion, kind)).namespaced;
  } catch {
    return true;
  }
}

async function inNamespace(inputs: Properties, around: Surroundings): Promise<Properties> {
  const { metadata, apiVersion, kind } = inputs;
  if (!isProperties(metadata)) {
    return inputs;
  }
  const namespaced = await scopeOf(text(apiVersion), text(kind), around);
  if (!namespaced) {
    return { ...inputs, metadata: without(metadata, "namespace") };
  }
  if (metadata.namespace !== undefined) {
    return inputs;
  }
  return { ...inputs, metadata: { ...metadata, namespace: await around.namespace() } };
}

const digest = (of: string | Uint8Array): string =>
  createHash("sha256").update(of).digest("hex").slice(0, 8);

const autonamed = "pulumi.com/autonamed";

/**
 * Gives a name to an object that has none, the same one as long as the object is not replaced.
 *
 * The engine leaves the old inputs out when it replaces, so a replacement has a name of its own.
 */
function withName(request: CheckRequest, inputs: Properties): Properties {
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
    readinessRuleOf(inputs);
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
  if (text(given.kind) === "CustomResourceDefinition") {
    const names = `${text(at(given, "spec", "group"))}/${text(at(given, "spec", "names", "kind"))}`;
    around.definedKinds.set(names, at(given, "spec", "scope") === "Namespaced");
  }
  const failures = hasUnknown(at(given, "metadata", "annotations"))
    ? []
    : failuresOf(given, isPatch);
  const named = isPatch || at(given, "metadata", "generateName") ? given : withName(request, given);
  return { inputs: marked(await inNamespace(named, around)), failures };
}
