import { Properties, Value } from "../protocol/values";
import { annotation, at, items, text } from "./objects";
import { waitedFor } from "./wait-for";

/** Undefined: ready. Else what is still missing, in words. */
export type Judge = (object: Properties) => string | undefined;

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
  (type: string): Judge =>
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
const unseen: Judge = (object) =>
  count(at(object, "status", "observedGeneration")) < count(at(object, "metadata", "generation"))
    ? "its controller has not seen the change yet"
    : undefined;

const deployment: Judge = (object) => {
  const status = (key: string) => count(at(object, "status", key));
  const wanted = count(at(object, "spec", "replicas"), 1);
  const progress = because(condition(object, "Progressing"));
  if (status("updatedReplicas") < wanted) {
    return `${status("updatedReplicas")} of ${wanted} pods are of the new version${progress}`;
  }
  if (status("replicas") > status("updatedReplicas")) {
    const old = status("replicas") - status("updatedReplicas");
    return `${old} pods of the old version are still there${progress}`;
  }
  if (status("availableReplicas") < status("updatedReplicas")) {
    return `${status("availableReplicas")} of ${wanted} pods are available${progress}`;
  }
  return undefined;
};

const daemonSet: Judge = (object) => {
  const status = (key: string) => count(at(object, "status", key));
  const wanted = status("desiredNumberScheduled");
  const phases: readonly (readonly [string, string])[] = [
    ["currentNumberScheduled", "have its pod"],
    ["updatedNumberScheduled", "have the new version of its pod"],
    ["numberAvailable", "have its pod available"],
    ["numberReady", "have its pod ready"],
  ];
  const [key, what] = phases.find(([phase]) => status(phase) < wanted) ?? [];
  return key && `${status(key)} of ${wanted} nodes ${what}`;
};

const statefulSet: Judge = (object) => {
  const status = (key: string) => count(at(object, "status", key));
  const wanted = count(at(object, "spec", "replicas"), 1);
  if (status("updatedReplicas") < wanted) {
    return `${status("updatedReplicas")} of ${wanted} pods are of the new version`;
  }
  return status("readyReplicas") < wanted
    ? `${status("readyReplicas")} of ${wanted} pods are ready`
    : undefined;
};

const job: Judge = (object) => {
  const failed = condition(object, "Failed");
  if (failed?.status === "True") {
    return `it has failed${because(failed)}`;
  }
  return at(object, "spec", "suspend") === true ? undefined : conditionIsTrue("Complete")(object);
};

const service: Judge = (object) =>
  at(object, "spec", "type") === "LoadBalancer" &&
  items(at(object, "status", "loadBalancer", "ingress")).length === 0
    ? "no load balancer has been given to it; that is the cloud controller manager's work"
    : undefined;

const phase =
  (...wanted: readonly string[]): Judge =>
  (object) => {
    const is = text(at(object, "status", "phase"));
    return wanted.includes(is) ? undefined : `its phase is ${is || "not known"}`;
  };

const pod: Judge = (object) =>
  at(object, "status", "phase") === "Succeeded" ? undefined : conditionIsTrue("Ready")(object);

const after =
  (...judges: readonly Judge[]): Judge =>
  (object) =>
    judges.reduce<string | undefined>((flaw, judge) => flaw ?? judge(object), undefined);

const rules: Readonly<Record<string, Judge>> = {
  "apps/v1/DaemonSet": after(unseen, daemonSet),
  "apps/v1/Deployment": after(unseen, deployment),
  "apps/v1/StatefulSet": after(unseen, statefulSet),
  "batch/v1/Job": job,
  "v1/Service": service,
  "v1/Pod": pod,
  "v1/Namespace": phase("Active"),
  "v1/PersistentVolume": phase("Available", "Bound"),
  "apiextensions.k8s.io/v1/CustomResourceDefinition": after(
    conditionIsTrue("NamesAccepted"),
    conditionIsTrue("Established"),
  ),
  "apiregistration.k8s.io/v1/APIService": conditionIsTrue("Available"),
};

/**
 * When an object counts as created or updated, going by its kind or by what it asks for in
 * annotations.
 */
export function judgeOf(inputs: Properties): Judge | undefined {
  if (annotation(inputs, "skipAwait") === "true") {
    return undefined;
  }
  const wanted = annotation(inputs, "waitFor");
  return wanted === ""
    ? rules[`${text(inputs.apiVersion)}/${text(inputs.kind)}`]
    : waitedFor(wanted);
}

/** What will not mend itself, so that there is no point in waiting on. */
export const isFinal = (flaw: string): boolean => flaw.startsWith("it has failed");
