import { readFileSync } from "node:fs";

/** What is wrong with the engine's own file of a stack's state; undefined when nothing is. */
export function damageOf(checkpoint: string): string | undefined {
  let file: unknown;
  try {
    file = JSON.parse(readFileSync(checkpoint, "utf8"));
  } catch {
    return "it is no JSON";
  }
  // The engine takes a file without these for an empty stack, and would create everything again.
  const { version, checkpoint: kept } = partsOf(file);
  const { stack, latest } = partsOf(kept);
  const { resources = [], pending_operations: pending = [] } = partsOf(latest);
  const isState =
    typeof version === "number" &&
    typeof stack === "string" &&
    Array.isArray(resources) &&
    Array.isArray(pending);
  return isState ? undefined : "it is JSON, but no state of a stack";
}

const partsOf = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
