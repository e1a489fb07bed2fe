import { existsSync } from "node:fs";
import { join } from "node:path";

import type { Attachment } from "../local-azure/daemon/attachment";
import { ensureDaemon } from "../local-azure/daemon/daemon-client";
import { chooseBackend } from "../local-azure/machines/choose-backend";
import { hostSettings } from "../local-azure/machines/qemu/host";
import { installOwnPrograms, useOwnPrograms } from "../local-azure/machines/own-programs";
import { prepareHost } from "../local-azure/machines/qemu/prepare";
import {
  apiNameIn,
  followMachines,
  type MachineOutput,
  machineTable,
  nodesOf,
  reachableHere,
} from "../local-azure/rehearsal/cluster-view";
import { choosePlugins } from "../local-azure/rehearsal/choose-plugins";
import { Rehearsal } from "../local-azure/rehearsal/rehearsal";
import { stackSettings } from "../local-azure/rehearsal/settings";
import { defaultState, lockFolder, takeFolder } from "../local-azure/rehearsal/state-folder";
import { prepareBinaries } from "../programs/engine";
import { clusterTools, kubectlTools } from "../programs/tools";
import { checkout } from "../shared/checkout";
import { writeWhole } from "../shared/files";
import { type Progress, spoken } from "../shared/progress";
import { UserError } from "../shared/user-error";
import { changedAnything } from "../pulumi/events";

interface StartOptions {
  readonly state: string;
  readonly stack: string;
  /** The first of seven ports in a row. */
  readonly port?: number;
  /** Real machines, with this much of their sizes' memory; without it they are simulated. */
  readonly qemu?: { readonly scale: number };
}

/** A path as a shell's own word. */
const forShell = (path: string): string =>
  /^[\w./:@%+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;

/** Everything from nothing to a rehearsed cluster; from a rehearsed cluster, only what differs. */
export async function start(
  { state: folder, stack, port, qemu }: StartOptions,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  if (!existsSync(join(checkout, `Pulumi.${stack}.yaml`))) {
    throw new UserError(
      `there is no stack ${stack}: expected a file Pulumi.${stack}.yaml with its settings, as for local, dev and prod`,
      2,
    );
  }
  const since = Date.now();
  const state = takeFolder(folder);
  const release = lockFolder(state);
  try {
    if (qemu) await prepareHost({ progress, signal });
    const tools = qemu ? kubectlTools : clusterTools;
    const binaries = await prepareBinaries({ progress, signal }, tools);
    const settings = stackSettings(checkout, stack);
    await chooseBackend(state, settings, { progress, signal, scale: qemu?.scale });
    await choosePlugins(state, { progress, signal, asked: process.env.ZONED_PLUGINS });
    if (!qemu) useOwnPrograms(state);
    const azure = await ensureDaemon({ state, binaries, port }, progress, signal);
    const rehearsal = await Rehearsal.open({ state, stack, binaries, azure, progress, signal });
    const ended = new AbortController();
    const installed = qemu
      ? undefined
      : installOwnPrograms(rehearsal.settings, {
          progress,
          signal: AbortSignal.any([signal, ended.signal]),
        });
    try {
      await bringUp(rehearsal, azure, progress);
      await show(rehearsal, { state, stack, binaries }, progress);
      progress.line(`\nready after ${spoken(Date.now() - since)}`);
      await installed;
    } finally {
      ended.abort();
      await installed;
    }
  } finally {
    release();
  }
}

async function bringUp(rehearsal: Rehearsal, azure: Attachment, progress: Progress): Promise<void> {
  const unfollow = followMachines(azure, progress);
  const run = await rehearsal.up().finally(unfollow);
  if (run.code !== 0) {
    throw new UserError(
      `pulumi up ended with ${run.code}; fix the cause above and run npm start again, which goes on from here`,
    );
  }
  progress.line(changedAnything(run) ? "" : "nothing changed\n");
}

async function show(
  rehearsal: Rehearsal,
  { state, stack, binaries }: { state: string; stack: string; binaries: string },
  progress: Progress,
): Promise<void> {
  const { kubeconfig, machines } = (await rehearsal.outputs()) as {
    kubeconfig?: string;
    machines?: readonly MachineOutput[];
  };
  if (kubeconfig === undefined || machines === undefined) {
    throw new UserError(
      `stack ${stack} has no outputs kubeconfig and machines; run npm start again`,
    );
  }
  const name = apiNameIn(kubeconfig);
  const address = await rehearsal.apiAddress(name);
  if (!address) {
    throw new UserError(`no API answers to ${name}; see ${join(state, "daemon.log")}`);
  }
  const file = join(state, stack === "local" ? "kubeconfig" : `kubeconfig-${stack}`);
  writeWhole(file, reachableHere(kubeconfig, address));
  progress.line(machineTable(machines, await nodesOf(binaries, file)));
  progress.line(
    [
      "",
      hostSettings(state) === undefined
        ? "The cluster's API is real, its machines are simulated. To use it:"
        : "The cluster and its machines are real, and Azure is simulated. To use it:",
      `  export KUBECONFIG=${forShell(file)}`,
      `  ${forShell(join(binaries, "kubectl"))} get nodes -L topology.kubernetes.io/zone`,
      `To take everything away: npm stop${state === defaultState ? "" : ` -- --state ${forShell(state)}`}`,
    ].join("\n"),
  );
}
