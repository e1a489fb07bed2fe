import { CheckRequest, CheckResult } from "../../protocol/protocol";
import { hasUnknown, isProperties, Properties } from "../../protocol/values";
import { Discovery } from "../api/discovery";
import {
  annotation,
  at,
  defaultNamespace,
  groupOf,
  kindOfType,
  marked,
  nameOf,
  normalised,
  text,
  without,
} from "../objects";
import { isNamespaced } from "../api/discovery";

interface Failure {
  readonly property: string;
  readonly reason: string;
}

/** What only the provider knows, asked for where it matters. */
export interface Surroundings {
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
  return { ...inputs, metadata: { ...metadata, namespace: defaultNamespace } };
}

/** Kinds that the official plugin awaits, and this one does not. */
const awaitedOfficially: readonly string[] = [
  "Ingress",
  "Job",
  "PersistentVolume",
  "PersistentVolumeClaim",
  "Pod",
  "ReplicationController",
  "ResourceQuota",
  "Service",
  "StatefulSet",
];

const officialAnnotations: readonly string[] = [
  "deletionPropagationPolicy",
  "patchFieldManager",
  "replaceUnready",
  "timeoutSeconds",
  "waitFor",
];

function failuresOf(inputs: Properties, isPatch: boolean): Failure[] {
  const kind = text(inputs.kind);
  const failures: Failure[] = [];
  if (isProperties(inputs.metadata ?? {}) && nameOf(inputs) === "") {
    failures.push({
      property: "metadata.name",
      reason: isPatch
        ? "a Patch resource must name the object that it changes in metadata.name"
        : "only the official plugin makes up a name: give metadata.name",
    });
  }
  if (kind.endsWith("List") && Array.isArray(inputs.items)) {
    failures.push({
      property: "kind",
      reason: `a ${kind} is no object: make a resource of each of its items`,
    });
  }
  if (!isPatch && awaitedOfficially.includes(kind) && annotation(inputs, "skipAwait") !== "true") {
    failures.push({
      property: "kind",
      reason: `only the official plugin knows when a ${kind} is ready`,
    });
  }
  for (const key of officialAnnotations.filter((one) => annotation(inputs, one) !== "")) {
    failures.push({
      property: "metadata.annotations",
      reason: `only the official plugin knows the annotation pulumi.com/${key}`,
    });
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
  return { inputs: marked(await inNamespace(given, around)), failures };
}
