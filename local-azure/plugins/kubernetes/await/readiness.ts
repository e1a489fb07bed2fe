import { isProperties, Properties, Value } from "../../protocol/values";
import type { Lister } from "../api/dynamic-client";
import { annotation, at, items, nameOf, namespaceOf, text } from "../objects";

/** Undefined when the object is ready; otherwise what is missing. */
export type ReadinessRule = (
  object: Properties,
  list: Lister,
) => string | undefined | Promise<string | undefined>;

const count = (value: Value, otherwise = 0): number =>
  typeof value === "number" ? value : otherwise;

const condition = (object: Properties, type: string): Properties | undefined =>
  items(at(object, "status", "conditions")).find((one) => one.type === type);

const because = (one: Properties | undefined): string => {
  const reason = [one?.reason, one?.message].map(text).filter((part) => part !== "");
  return reason.length > 0 ? ` (${reason.join(": ")})` : "";
};

/** Ready once a condition is true. */
const conditionIsTrue =
  (type: string): ReadinessRule =>
  (object) => {
    const found = condition(object, type);
    return found?.status === "True"
      ? undefined
      : `its condition ${type} is not true${because(found)}`;
  };

/**
 * The numbers in a status are those of an older generation until its controller has seen the new
 * one.
 */
const notObserved: ReadinessRule = (object) =>
  count(at(object, "status", "observedGeneration")) < count(at(object, "metadata", "generation"))
    ? "its controller has not seen the change yet"
    : undefined;

/** As kstatus has it for every kind. */
const reconciled: ReadinessRule = (object) => {
  if (text(at(object, "metadata", "deletionTimestamp")) !== "") {
    return "it is being deleted";
  }
  if (at(object, "status", "observedGeneration") !== at(object, "metadata", "generation")) {
    return "its controller has not seen the change yet";
  }
  const stopped = ["Reconciling", "Stalled"]
    .map((type) => condition(object, type))
    .find((one) => one?.status === "True");
  return stopped && `its condition ${text(stopped.type)} is true${because(stopped)}`;
};

const revisionOf = (object: Properties): string =>
  text(at(object, "metadata", "annotations", "deployment.kubernetes.io/revision"));

const isOwnedBy = (object: Properties, owner: Properties): boolean =>
  items(at(object, "metadata", "ownerReferences")).some(
    ({ kind, name }) => kind === owner.kind && name === nameOf(owner),
  );

/** Judged by its conditions and by the ReplicaSet of its revision; the first revision has no rollout. */
const deployment: ReadinessRule = async (object, list) => {
  const revision = revisionOf(object);
  const progressing = condition(object, "Progressing");
  const isRolledOut =
    progressing?.status === "True" && progressing.reason === "NewReplicaSetAvailable";
  if (revision !== "1" && !isRolledOut) {
    return `its rollout is not complete${because(progressing)}`;
  }
  const sets = await list("apps/v1", "ReplicaSet", namespaceOf(object));
  const set = sets.find((one) => isOwnedBy(one, object) && revisionOf(one) === revision);
  if (!set) {
    return `its ReplicaSet of revision ${revision} does not exist yet`;
  }
  const wanted = count(at(set, "spec", "replicas"), 1);
  const readyPods = count(at(set, "status", "readyReplicas"));
  return readyPods < wanted ? `${readyPods} of ${wanted} pods are ready` : undefined;
};

const daemonSet: ReadinessRule = (object) => {
  const status = (key: string) => count(at(object, "status", key));
  const wanted = at(object, "status", "desiredNumberScheduled");
  if (typeof wanted !== "number") {
    return "its controller has not counted its nodes yet";
  }
  const phases: readonly (readonly [string, string])[] = [
    ["currentNumberScheduled", "have its pod"],
    ["updatedNumberScheduled", "have the new version of its pod"],
    ["numberAvailable", "have its pod available"],
    ["numberReady", "have its pod ready"],
  ];
  const [key, what] = phases.find(([phase]) => status(phase) < wanted) ?? [];
  return key && `${status(key)} of ${wanted} nodes ${what}`;
};

const statefulSet: ReadinessRule = (object) => {
  const status = (key: string) => count(at(object, "status", key));
  const wanted = count(at(object, "spec", "replicas"), 1);
  if (status("updatedReplicas") < wanted) {
    return `${status("updatedReplicas")} of ${wanted} pods are of the new version`;
  }
  return status("readyReplicas") < wanted
    ? `${status("readyReplicas")} of ${wanted} pods are ready`
    : undefined;
};

const job: ReadinessRule = (object, list) => {
  const failed = condition(object, "Failed");
  if (failed?.status === "True") {
    return `it has failed${because(failed)}`;
  }
  return at(object, "spec", "suspend") === true
    ? undefined
    : conditionIsTrue("Complete")(object, list);
};

/** Ready when no pod that it selects is unready; also when it selects no pod at all. */
const service: ReadinessRule = async (object, list) => {
  const { type, clusterIP, selector } = (object.spec ?? {}) as Properties;
  if (
    type === "LoadBalancer" &&
    items(at(object, "status", "loadBalancer", "ingress")).length === 0
  ) {
    return "no load balancer has been given to it; that is the cloud controller manager's work";
  }
  const hasSelector = isProperties(selector) && Object.keys(selector).length > 0;
  if (type === "ExternalName" || clusterIP === "None" || !hasSelector) {
    return undefined;
  }
  const all = await list("v1", "Endpoints", namespaceOf(object));
  const endpoints = all.find((one) => nameOf(one) === nameOf(object));
  if (!endpoints) {
    return "its Endpoints do not exist yet";
  }
  const unready = items(at(endpoints, "subsets")).flatMap(({ notReadyAddresses }) =>
    items(notReadyAddresses ?? []),
  );
  return unready.length > 0 ? `${unready.length} of the pods behind it are not ready` : undefined;
};

const phase =
  (...wanted: readonly string[]): ReadinessRule =>
  (object) => {
    const is = text(at(object, "status", "phase"));
    return wanted.includes(is) ? undefined : `its phase is ${is || "not known"}`;
  };

const pod: ReadinessRule = (object, list) =>
  at(object, "status", "phase") === "Succeeded"
    ? undefined
    : conditionIsTrue("Ready")(object, list);

const after =
  (...rules: readonly ReadinessRule[]): ReadinessRule =>
  async (object, list) => {
    for (const rule of rules) {
      const problem = await rule(object, list);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };

/** Other kinds are ready once they exist; among them are Namespaces and CustomResourceDefinitions. */
const rules: Readonly<Record<string, ReadinessRule>> = {
  "apps/v1/DaemonSet": after(reconciled, daemonSet),
  "apps/v1/Deployment": after(notObserved, conditionIsTrue("Available"), deployment),
  "apps/v1/StatefulSet": after(notObserved, statefulSet),
  "batch/v1/Job": job,
  "v1/Service": service,
  "v1/Pod": pod,
  "v1/PersistentVolume": phase("Available", "Bound"),
};

const ruleOfKind = ({ apiVersion, kind }: Properties): ReadinessRule | undefined =>
  rules[`${text(apiVersion)}/${text(kind)}`];

/** By which rule a refresh reports an object that is not ready; annotations with conditions do not count there. */
export const readRuleOf = (inputs: Properties): ReadinessRule | undefined =>
  annotation(inputs, "skipAwait") === "true" || inputs.kind === "PersistentVolume"
    ? undefined
    : ruleOfKind(inputs);

/**
 * When an object counts as created or updated, going by its kind or by what it asks for in
 * annotations.
 */
export function readinessRuleOf(inputs: Properties): ReadinessRule | undefined {
  if (annotation(inputs, "skipAwait") === "true") {
    return undefined;
  }
  const wanted = annotation(inputs, "waitFor");
  return wanted === "" ? ruleOfKind(inputs) : waitedFor(wanted);
}

/** What no waiting changes. */
export const isFinal = (problem: string): boolean => problem.startsWith("it has failed");

const expected =
  'expected "condition=Type", "condition=Type=Status", "jsonpath={.path}" or ' +
  '"jsonpath={.path}=value", or a JSON list of these';

/** Keys, indexes and `?(@.key=="value")` filters of a JSONPath as kubectl writes it. */
function steps(path: string): ((value: Value) => Value)[] {
  const token = /\.((?:\\\.|[^.[\]])+)|\[(\d+)\]|\[\?\(@\.([\w.]+)\s*==\s*["']([^"']*)["']\)\]/gy;
  const found: ((value: Value) => Value)[] = [];
  while (token.lastIndex < path.length) {
    const match = token.exec(path);
    if (!match) {
      throw new Error(
        `pulumi.com/waitFor has the path {${path}}, which is beyond this provider: ${expected}`,
      );
    }
    const [, key, index, filterKey, filterValue] = match;
    if (key !== undefined) {
      found.push((value) => (isProperties(value) ? value[key.replaceAll("\\.", ".")] : undefined));
    } else if (index !== undefined) {
      found.push((value) => (Array.isArray(value) ? value[Number(index)] : undefined));
    } else {
      const keys = (filterKey ?? "").split(".");
      found.push((value) => items(value).find((item) => String(at(item, ...keys)) === filterValue));
    }
  }
  return found;
}

function conditionOf(expression: string): ReadinessRule {
  const [, type, status = "True"] = /^condition=([^=]+)(?:=(.+))?$/.exec(expression) ?? [];
  if (type !== undefined) {
    return (object: Properties) => {
      const has = items(at(object, "status", "conditions")).find((entry) => entry.type === type);
      const is = text(has?.status) || "not there";
      return is.toLowerCase() === status.toLowerCase()
        ? undefined
        : `its condition ${type} is ${is}, and ${status} is waited for`;
    };
  }
  const [, braced, bare, wanted] =
    /^jsonpath=["']?(?:\{([^}]*)\}|(\.[^="']*))["']?(?:=(.*))?$/.exec(expression) ?? [];
  const path = braced ?? bare;
  if (path === undefined) {
    throw new Error(`pulumi.com/waitFor is ${JSON.stringify(expression)}: ${expected}`);
  }
  const walk = steps(path);
  return (object) => {
    const value = walk.reduce<Value>((part, step) => step(part), object);
    if (wanted === undefined ? value !== undefined : String(value) === wanted) {
      return undefined;
    }
    const is = value === undefined ? "not there" : JSON.stringify(value);
    return `its ${path} is ${is}${wanted === undefined ? "" : `, and ${wanted} is waited for`}`;
  };
}

/**
 * The annotation `pulumi.com/waitFor`: one expression, or a JSON list of them that must all hold.
 */
function waitedFor(annotation: string): ReadinessRule {
  return after(...listed(annotation).map(conditionOf));
}

function listed(annotation: string): string[] {
  if (!annotation.trimStart().startsWith("[")) {
    return [annotation];
  }
  try {
    return (JSON.parse(annotation) as unknown[]).map(String);
  } catch {
    throw new Error(`pulumi.com/waitFor is ${JSON.stringify(annotation)}: ${expected}`);
  }
}
