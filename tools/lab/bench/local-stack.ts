import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { type LocalAzure, startLocalAzure } from "../../local-azure/daemon/local-azure";
import { Rehearsal, type RehearsalOptions, type Run } from "../../local-azure/rehearsal/rehearsal";
import { UserError } from "../../shared/user-error";
import type { StateResource } from "./chain";
import { PacedMachines } from "./paced-machines";

/** What every measurement needs. */
export interface Bench {
  /** Folder of the engine and the control plane's programs. */
  readonly binaries: string;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

/** A local Azure for one measurement, removed afterwards. */
export async function onLocalAzure<T>(
  { binaries }: Bench,
  factor: number,
  work: (azure: LocalAzure, state: string) => Promise<T>,
): Promise<T> {
  const state = mkdtempSync(join(tmpdir(), "zoned-bench-"));
  try {
    const azure = await startLocalAzure({
      state,
      binaries,
      around: (machines) => new PacedMachines(machines, factor),
      log: () => undefined,
    });
    azure.arm.durations.set({ factor });
    return await work(azure, state).finally(() => azure.stop());
  } finally {
    rmSync(state, { recursive: true, force: true, maxRetries: 5 });
  }
}

export const stackOn = (
  { binaries, signal }: Bench,
  azure: LocalAzure,
  state: string,
  options: Pick<RehearsalOptions, "stack" | "program" | "settings">,
): Promise<Rehearsal> => Rehearsal.open({ ...options, binaries, signal, azure, state });

/** The run and its seconds. A failed run ends the bench with the output of the engine. */
export async function timed(run: () => Promise<Run>): Promise<{ run: Run; seconds: number }> {
  const since = performance.now();
  const ended = await run();
  const seconds = (performance.now() - since) / 1000;
  if (ended.code === 0) return { run: ended, seconds };
  throw new UserError(
    `pulumi ended with ${ended.code}, so there is nothing to measure:\n${ended.stdout}`,
  );
}

/** The resources of a stack, with secrets as they are. */
export async function stateOf(stack: Rehearsal): Promise<readonly StateResource[]> {
  const { stdout } = await stack.command("stack", "export", "--show-secrets");
  return (JSON.parse(stdout) as { deployment: { resources: StateResource[] } }).deployment
    .resources;
}

export const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
