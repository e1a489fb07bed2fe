import type { CheckRequest, CheckResult } from "../../protocol/protocol";
import { hasUnknown, isProperties, Properties } from "../../protocol/values";
import { kindOf } from "../kinds";
import {
  annotation,
  at,
  defaultNamespace,
  kindOfType,
  marked,
  nameOf,
  normalised,
  text,
  without,
} from "../objects";

interface Failure {
  readonly property: string;
  readonly reason: string;
}

function inNamespace(inputs: Properties, isNamespaced: boolean): Properties {
  const { metadata } = inputs;
  if (!isProperties(metadata)) {
    return inputs;
  }
  return {
    ...inputs,
    metadata: isNamespaced
      ? { ...metadata, namespace: metadata.namespace ?? defaultNamespace }
      : without(metadata, "namespace"),
  };
}

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
  if (!isPatch && kind === "Service" && annotation(inputs, "skipAwait") !== "true") {
    failures.push({
      property: "kind",
      reason: "only the official plugin knows when a Service is ready",
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
export function checked({ type, news }: CheckRequest): CheckResult {
  const { isPatch, ...kind } = kindOfType(type);
  const given = normalised({ ...kind, ...news });
  const { isNamespaced } = kindOf(given);
  const failures = hasUnknown(at(given, "metadata", "annotations"))
    ? []
    : failuresOf(given, isPatch);
  return { inputs: marked(inNamespace(given, isNamespaced)), failures };
}
