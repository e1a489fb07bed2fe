import type { CheckRequest, CheckResult, DiffResult } from "../protocol/protocol";
import { hasUnknown, isProperties, isUnknown, Properties } from "../protocol/values";
import { kindOf } from "./kinds";
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
} from "./objects";
import { changesBetween } from "../protocol/changes";

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

/** Whose readiness the official plugin knows; of the kinds in kinds.ts, these alone are awaited by it. */
const awaitedKinds: readonly string[] = ["DaemonSet", "Deployment", "Service"];

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
  if (awaitedKinds.includes(kind) && annotation(inputs, "skipAwait") !== "true") {
    failures.push({
      property: "kind",
      reason: `only the official plugin knows when a ${kind} is ready: annotate it with pulumi.com/skipAwait`,
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

/** How this stand-in works, whatever the settings say. */
const always: readonly string[] = ["upsertExistingObjects", "enablePatchForce"];

const officialOnly: readonly string[] = [
  "cluster",
  "context",
  "deleteUnreachable",
  "enableConfigMapMutable",
  "enableSecretMutable",
  "namespace",
  "renderYamlToDirectory",
  "skipUpdateUnreachable",
];

/** Flags come as text. */
const isTrue = (value: unknown): boolean => value === true || value === "true";

/** Refuses, before anything is planned, what only the official plugin can do. */
export function checkConfig(news: Properties): CheckResult {
  const isOff = (property: string): boolean =>
    text(news[property]) === "false" || news[property] === false;
  const { clusterIdentifier } = news;
  const isIdentified = text(clusterIdentifier) !== "" && !isUnknown(clusterIdentifier);
  const failure = (reason: string) => (property: string) => ({ property, reason });
  const failures = [
    ...officialOnly
      .filter((property) => Boolean(news[property]) && !isOff(property))
      .concat(["enableServerSideApply"].filter(isOff))
      .map(failure("only the official plugin has it: leave it out")),
    ...always
      .filter((property) => !isTrue(news[property]))
      .map(failure("this stand-in for the kubernetes plugin works only with it: set it to true")),
    ...(isIdentified ? [] : ["clusterIdentifier"]).map(
      failure("only the official plugin tells clusters apart by their addresses: give each a name"),
    ),
  ];
  return { inputs: news, failures };
}

/** A provider that leads to another cluster is replaced, and every object in it too. */
export const diffConfig = (olds: Properties, news: Properties): DiffResult => ({
  changes: changesBetween(olds, news, { replaces: (path) => path === "clusterIdentifier" }),
});
