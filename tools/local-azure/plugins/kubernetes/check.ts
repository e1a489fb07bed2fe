import {
  changesBetween,
  type CheckRequest,
  type CheckResult,
  DiffRequest,
  DiffResult,
} from "../protocol/protocol";
import { hasUnknown, isProperties, isUnknown, Properties, Value } from "../protocol/values";
import {
  annotation,
  at,
  defaultNamespace,
  kindOf,
  kindOfType,
  marked,
  nameOf,
  normalised,
  text,
  without,
} from "./objects";

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

/** Whose readiness the official plugin knows; of the kinds in objects.ts, these alone are awaited by it. */
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

const mutableBy = { ConfigMap: "enableConfigMapMutable", Secret: "enableSecretMutable" };

/** Kinds whose data change in place, by the settings of the provider. */
export const mutableKinds = (config: Properties): string[] =>
  Object.entries(mutableBy).flatMap(([kind, setting]) => (isTrue(config[setting]) ? [kind] : []));

function fixedOf(news: Properties, mutable: readonly string[]): readonly string[] {
  const { fixed } = kindOf(news);
  const isMutable = mutable.includes(text(news.kind)) && news.immutable !== true;
  return isMutable ? fixed.filter((path) => path !== "data" && path !== "binaryData") : fixed;
}

/**
 * What would change of the object as it was seen last, and whether that takes a new one.
 *
 * @param mutable see mutableKinds
 */
export function difference(
  { type, olds, news, state }: DiffRequest,
  mutable: readonly string[],
): DiffResult {
  const before = pruned(state, olds) as Properties;
  const fixed = [
    "metadata.name",
    "metadata.namespace",
    "kind",
    ...(kindOfType(type).isPatch ? [] : fixedOf(news, mutable)),
  ];
  const changes = changesBetween(before, news, {
    replaces: (path) =>
      fixed.some(
        (part) => path === part || path.startsWith(`${part}.`) || path.startsWith(`${part}[`),
      ),
  });
  return {
    changes,
    // Two objects of one name cannot be there at once.
    deleteBeforeReplace:
      changes.some(({ replaces }) => replaces) &&
      nameOf(news) === nameOf(state) &&
      at(news, "metadata", "namespace") === at(before, "metadata", "namespace"),
  };
}

const isEmpty = (value: Value): boolean =>
  isProperties(value) || Array.isArray(value) ? Object.keys(value).length === 0 : !value;

/**
 * Of an object as the cluster has it, what the inputs name: the rest is the server's, or somebody
 * else's. Items of lists are told apart by their place alone, as the official plugin does: what
 * somebody adds behind the program's own is not seen, and what comes to stand before them is taken
 * for a change. The server leaves out what is empty.
 */
export function pruned(live: Value, inputs: Value): Value {
  if (isProperties(live) && isProperties(inputs)) {
    return Object.fromEntries(
      Object.entries(inputs).flatMap(([key, input]) => {
        if (live[key] !== undefined) return [[key, pruned(live[key], input)] as const];
        return isEmpty(input) ? [[key, input] as const] : [];
      }),
    );
  }
  if (Array.isArray(live) && Array.isArray(inputs)) {
    return live.slice(0, inputs.length).map((item, index) => pruned(item, inputs[index]));
  }
  return live;
}
