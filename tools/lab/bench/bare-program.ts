import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { RehearsalOptions } from "../../local-azure/rehearsal/rehearsal";
import type { StateResource } from "./chain";

/**
 * A stack whose program only registers the resources that another stack's state has.
 *
 * @param state with secrets in clear
 * @param file what the program reads; it contains the state's private keys
 */
export function bareProgram(
  state: readonly StateResource[],
  file: string,
): Pick<RehearsalOptions, "stack" | "program" | "settings"> {
  const provider = state.find(({ type }) => type === "pulumi:providers:kubernetes")!;
  const registered = withoutDynamic(state).map(({ type, urn, inputs, id }) => ({
    type,
    name: urn.split("::").at(-1),
    ...(id && { inputs: withoutMarks(inputs) }),
  }));
  const text = JSON.stringify({
    resources: registered,
    provider: flagsOf(withoutMarks(provider.inputs) as Record<string, unknown>),
  });
  writeFileSync(file, text, { mode: 0o600 });
  return {
    stack: "bare",
    program: join(__dirname, "same-resources"),
    settings: { resources: file },
  };
}

/** Dynamic resources have the program's own code. */
export const withoutDynamic = (state: readonly StateResource[]): readonly StateResource[] =>
  state.filter(({ type }) => !/^pulumi(-nodejs)?:/.test(type));

/** A provider's inputs that are no text are JSON in the state. */
const flagsOf = (inputs: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(inputs).map(([key, value]) => [key, value === "true" ? true : value]),
  );

const secretMark = "4dabf18193072939515e22adb298388d";

/** Inputs as a program would write them: secrets in clear, and without the engine's own fields. */
function withoutMarks(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutMarks);
  if (secretMark in value && "plaintext" in value) return JSON.parse(String(value.plaintext));
  const kept = Object.entries(value).filter(([key]) => !key.startsWith("__"));
  return Object.fromEntries(kept.map(([key, one]) => [key, withoutMarks(one)]));
}
