import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { RehearsalOptions } from "../../local-azure/rehearsal/rehearsal";
import type { StateResource } from "./chain";
import { type Bench, median, onLocalAzure, stackOn, stateOf, timed } from "./local-stack";

const rounds = 3;

export interface Previews {
  readonly resources: number;
  /** Seconds, medians. */
  readonly preview: number;
  readonly bare: number;
  readonly unchangedPreview: number;
  readonly unchangedUp: number;
}

/**
 * The local stack's preview beside one of a program that only registers as many resources of the
 * same types, and its update without changes beside its preview; in turn, so that a busy minute meets
 * both.
 */
export const previews = (bench: Bench): Promise<Previews> =>
  onLocalAzure(bench, 0, async (azure, state) => {
    const stack = await stackOn(bench, azure, state, { stack: "local" });
    bench.log("local stack: up, to learn which resources it has");
    await timed(() => stack.up());
    const resources = await stateOf(stack);
    // Removed with the folder.
    const program = bareProgram(resources, join(state, "resources.json"));
    const bare = await stackOn(bench, azure, join(state, "bare"), program);

    const unchanged: [number[], number[]] = [[], []];
    for (let round = 1; round <= rounds; round += 1) {
      bench.log(`local stack without changes: preview and up, ${round} of ${rounds}`);
      unchanged[0].push((await timed(() => stack.preview())).seconds);
      unchanged[1].push((await timed(() => stack.up("--skip-preview"))).seconds);
    }

    const fresh: [number[], number[]] = [[], []];
    await onLocalAzure(bench, 0, async (empty, emptyState) => {
      const real = await stackOn(bench, empty, emptyState, { stack: "local" });
      for (let round = 1; round <= rounds; round += 1) {
        bench.log(`fresh local stack and the bare program: preview, ${round} of ${rounds}`);
        fresh[0].push((await timed(() => real.preview())).seconds);
        fresh[1].push((await timed(() => bare.preview())).seconds);
      }
    });
    return {
      resources: withoutDynamic(resources).length,
      preview: median(fresh[0]),
      bare: median(fresh[1]),
      unchangedPreview: median(unchanged[0]),
      unchangedUp: median(unchanged[1]),
    };
  });

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
const withoutDynamic = (state: readonly StateResource[]): readonly StateResource[] =>
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
