import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Breakpoints } from "./resource-manager/breakpoints";
import type { Around } from "./standins/protocol/serve";

/** What another plugin than Azure's was asked to change. */
export interface Operation {
  readonly startedAt: string;
  readonly method: string;
  /** The resource's URN. */
  readonly id: string;
}

const fileOf = (state: string): string => join(state, "operations.jsonl");

/** Writes down what plugins without a log of their own are asked to change, and holds it where it has to. */
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
