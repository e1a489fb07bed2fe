import type { Disturbance } from "./disturbances";
import type { Request, Scenario } from "./scenarios";

/** One thing that goes wrong in a scenario. */
export interface Case {
  readonly scenario: Scenario;
  /** A row of the report. */
  readonly kind: string;
  /** Verb and type of the request at which it does; for others what it is. */
  readonly what: string;
  readonly title: string;
  readonly disturbance: Disturbance;
}

/** By which a case is chosen, and found again in a report. */
export const nameOf = ({
  scenario,
  kind,
  title,
}: {
  readonly scenario: Scenario | string;
  readonly kind: string;
  readonly title: string;
}): string => `${typeof scenario === "string" ? scenario : scenario.key}: ${kind}: ${title}`;

/** Cases of one class are likely to end the same. */
export const classOf = ({
  scenario,
  kind,
  what,
}: {
  readonly scenario: Scenario | string;
  readonly kind: string;
  readonly what: string;
}): string => nameOf({ scenario, kind, title: what });

export const whatOf = ({ method, type }: Request): string => `${method} ${wayOf(type)}`;

/**
 * Azure's types are made each in its own way; the tls plugin makes all of its alike, and the
 * kubernetes plugin all objects that it does not wait for.
 */
function wayOf(type: string): string {
  if (type.startsWith("tls:")) return "tls";
  if (!type.startsWith("kubernetes:")) return type.toLowerCase();
  if (type.endsWith("Patch")) return "kubernetes patch";
  return type.startsWith("kubernetes:apps/") ? "kubernetes workload" : "kubernetes object";
}
