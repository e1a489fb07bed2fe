import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Breakpoints } from "../arm/faults";
import type { Around } from "../plugins/protocol/serve";

/** A create, update or delete request to the tls or the kubernetes provider. */
export interface Operation {
  readonly startedAt: string;
  readonly method: string;
  /** The resource's URN. */
  readonly id: string;
}

const fileOf = (state: string): string => join(state, "operations.jsonl");

/**
 * Logs the operations of the tls and kubernetes providers, and applies breakpoints to them.
 */
export const operationsOf =
  (state: string, breakpoints: Breakpoints): Around =>
  (method, id, act) => {
    const operation: Operation = { startedAt: new Date().toISOString(), method, id };
    appendFileSync(fileOf(state), `${JSON.stringify(operation)}\n`, { mode: 0o600 });
    return breakpoints.around(method, id, act);
  };

export function readOperations(state: string): Operation[] {
  if (!existsSync(fileOf(state))) return [];
  const lines = readFileSync(fileOf(state), "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Operation);
}
