import { setTimeout as pause } from "node:timers/promises";
import { Properties, Value } from "../../protocol/values";
import { annotation, at, items, nameOf, namespaceOf, text } from "../objects";
import { Unreachable } from "../api/client";

/** Undefined when the object is ready; otherwise what is missing. */
type ReadinessRule = (
  object: Properties,
  replicaSets: (namespace: string) => Promise<Properties[]>,
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
const deployment: ReadinessRule = async (object, replicaSets) => {
  const revision = revisionOf(object);
  const progressing = condition(object, "Progressing");
  const isRolledOut =
    progressing?.status === "True" && progressing.reason === "NewReplicaSetAvailable";
  if (revision !== "1" && !isRolledOut) {
    return `its rollout is not complete${because(progressing)}`;
  }
  const sets = await replicaSets(namespaceOf(object));
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

const after =
  (...rules: readonly ReadinessRule[]): ReadinessRule =>
  async (object, replicaSets) => {
    for (const rule of rules) {
      const problem = await rule(object, replicaSets);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };

/**
 * Other kinds are ready once they exist; among them are Namespaces and CustomResourceDefinitions.
 * Kinds that the official plugin awaits besides are refused in Check.
 */
const rules: Readonly<Record<string, ReadinessRule>> = {
  "apps/v1/DaemonSet": after(reconciled, daemonSet),
  "apps/v1/Deployment": after(notObserved, conditionIsTrue("Available"), deployment),
};

/** When an object counts as created or updated, and what a refresh reports. */
export const readinessRuleOf = (inputs: Properties): ReadinessRule | undefined =>
  annotation(inputs, "skipAwait") === "true"
    ? undefined
    : rules[`${text(inputs.apiVersion)}/${text(inputs.kind)}`];

const firstPauseMs = 50;
const longestPauseMs = 1000;
/** Shorter waits are not reported. */
const quietMs = 1000;
const defaultTimeoutSeconds = 600;

/** customTimeouts, or ten minutes. */
export const timeoutOf = (timeoutSeconds: number): number =>
  timeoutSeconds || defaultTimeoutSeconds;

interface Wait {
  readonly read: () => Promise<Properties>;
  readonly rule: (object: Properties) => Promise<string | undefined>;
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
  /** Gets what is missing when it takes a while, and an empty text when that is over. */
  readonly progress: (problem: string) => void;
}

interface Outcome {
  readonly object: Properties;
  /** Why it was given up; undefined when all is well. */
  readonly problem?: string;
}

/**
 * Looks at an object until it is as it should be. The pauses grow, since most are at once and some
 * take minutes.
 */
export async function awaited(first: Properties, wait: Wait): Promise<Outcome> {
  const start = Date.now();
  const end = start + wait.timeoutSeconds * 1000;
  let object = first;
  let reported = "";
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
    const problem = await wait.rule(object);
    if (problem === undefined) {
      if (reported !== "") {
        wait.progress("");
      }
      return { object };
    }
    if (Date.now() > end) {
      return { object, problem: `${problem} after ${wait.timeoutSeconds} seconds` };
    }
    if (problem !== reported && Date.now() > start + quietMs) {
      wait.progress(problem);
      reported = problem;
    }
    try {
      await pause(pauseMs, undefined, { signal: wait.signal });
      object = await wait.read();
    } catch (error) {
      // An API server that restarts in the meantime is back soon.
      if (error instanceof Unreachable && !wait.signal.aborted) {
        continue;
      }
      const why = wait.signal.aborted ? "the run was interrupted" : (error as Error).message;
      return { object, problem: `${problem}, and then ${why}` };
    }
  }
}
