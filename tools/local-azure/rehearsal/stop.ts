import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { endDaemon, ensureDaemon } from "../daemon/daemon-client";
import { hostSettings, settingsFile } from "../machines/qemu/host";
import { arePluginsThere, pluginsFile } from "./choose-plugins";
import { Rehearsal } from "./rehearsal";
import { clearFolder, lockFolder, rehearsalFolder } from "./state-folder";
import { installedBinaries } from "../../programs/engine";
import { clusterTools, kubectlTools } from "../../programs/tools";
import type { Progress } from "../../shared/progress";
import { Interrupted, messageOf, UserError } from "../../shared/user-error";
import { damageOf, endRunsIn } from "../../pulumi/pulumi";

interface StopOptions {
  readonly state: string;
  /** Removes everything without a `pulumi destroy` before it. */
  readonly discard: boolean;
}

/** Destroys every stack of the rehearsal, and leaves no process, port or file of it. */
export async function stop(
  { state: folder, discard }: StopOptions,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const state = rehearsalFolder(folder);
  if (state === undefined) {
    progress.line("nothing to stop: there is no rehearsal");
    return;
  }
  const release = lockFolder(state, discard);
  try {
    const reason = discard ? "--discard was given" : await destroyAll(state, progress, signal);
    await progress.during("stopping the local Azure", async () => {
      await endRunsIn(state);
      await endDaemon(state);
    });
    const others = clearFolder(folder);
    const isLeft = existsSync(state);
    progress.line(
      reason === undefined
        ? `everything is gone${isLeft ? "" : `, ${state} too`}`
        : `removed without pulumi destroy (${reason}): the local Azure with its control plane processes, and ${isLeft ? "" : `${state} with `}the stacks' state, kubeconfigs and logs`,
    );
    if (others.length > 0) {
      progress.line(`left in ${state}, since they are no rehearsal's: ${others.join(", ")}`);
    }
  } finally {
    release();
  }
}

/**
 * Destroys the stacks; returns why that is out of the question, when nothing is left to destroy
 * them with.
 */
async function destroyAll(
  state: string,
  progress: Progress,
  signal: AbortSignal,
): Promise<string | undefined> {
  const stacks = stacksIn(state);
  if (stacks.length === 0) return undefined;
  const own = [
    ...[join(state, "resources.json"), settingsFile(state), pluginsFile(state)],
    ...assumedSettingsIn(state),
  ];
  const damaged =
    own.find((file) => existsSync(file) && !isJson(file)) ??
    stacks.map(({ checkpoint }) => checkpoint).find((file) => damageOf(file) !== undefined);
  if (damaged !== undefined) return `${damaged} is damaged`;
  const binaries = await installedBinaries(hostSettings(state) ? kubectlTools : clusterTools);
  if (binaries === undefined) return "the engine is no longer in the cache";
  if (!arePluginsThere(state)) return "the official plugins are no longer in the cache";
  const azure = await ensureDaemon({ state, binaries }, progress, signal).catch(
    (error: unknown) => {
      if (error instanceof Interrupted) throw error;
      return `the local Azure does not start: ${messageOf(error)}`;
    },
  );
  if (typeof azure === "string") return azure;
  for (const { stack } of stacks) {
    const rehearsal = await Rehearsal.open({ state, stack, binaries, azure, progress, signal });
    // Protection is for what cannot be had again.
    await rehearsal.unprotect();
    const { code } = await rehearsal.destroy();
    if (code !== 0) {
      throw new UserError(
        `pulumi destroy of stack ${stack} ended with ${code}, so everything was left; fix the cause above and run npm stop again, or remove it as it is: npm stop -- --discard`,
      );
    }
  }
  return undefined;
}

function stacksIn(state: string): { stack: string; checkpoint: string }[] {
  const folder = join(state, "backend", ".pulumi", "stacks");
  const projects = existsSync(folder) ? readdirSync(folder) : [];
  return projects.flatMap((project) =>
    readdirSync(join(folder, project))
      .filter((name) => name.endsWith(".json"))
      .map((name) => ({
        stack: name.replace(/\.json$/, ""),
        checkpoint: join(folder, project, name),
      })),
  );
}

const assumedSettingsIn = (state: string): string[] =>
  readdirSync(state)
    .filter((name) => name.endsWith(".assumed.json"))
    .map((name) => join(state, name));

function isJson(file: string): boolean {
  try {
    JSON.parse(readFileSync(file, "utf8"));
    return true;
  } catch {
    return false;
  }
}
