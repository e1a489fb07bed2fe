import { setTimeout as pause } from "node:timers/promises";

import * as pulumi from "@pulumi/pulumi";

/** A backend in files is written anew with every step, and may be read while it is. */
const attempts = 10;
const pauseMilliseconds = 300;

/** Asks Pulumi's engine for what the backend has of a stack. */
export async function askBackend<T>(
  question: "readStackOutputs" | "readStackResourceOutputs",
  args: pulumi.Inputs,
  attempt = 1,
): Promise<T | undefined> {
  try {
    const { outputs } = await pulumi.runtime.invoke(`pulumi:pulumi:${question}`, args);
    return outputs;
  } catch (error) {
    if (attempt === attempts) throw error;
    await pause(pauseMilliseconds);
    return askBackend(question, args, attempt + 1);
  }
}

/** @throws RunError with all problems, if there are any */
export function refuse(problems: readonly string[]): void {
  if (problems.length === 0) return;
  throw new pulumi.RunError(
    `stack ${pulumi.getStack()} cannot be deployed:\n  - ${problems.join("\n  - ")}`,
  );
}
