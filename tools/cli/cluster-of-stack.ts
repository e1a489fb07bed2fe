import { resolve } from "node:path";

import type { PreviousOutputs } from "../../components/plan/machine-changes";
import type { Expected } from "../doctor/check";
import type { Cluster } from "../doctor/doctor";
import { proxyOf } from "../local-azure/daemon/attachment";
import { runningDaemon } from "../local-azure/daemon/daemon-client";
import { hostSettings } from "../local-azure/machines/local-machines";
import { passphraseOf } from "../local-azure/rehearsal/passphrase";
import { defaultState, rehearsalFolder } from "../local-azure/rehearsal/state-folder";
import { checkout } from "../shared/checkout";
import { UserError } from "../shared/user-error";
import { type Ended, pulumi } from "../pulumi/pulumi";
import { ownPulumi } from "../recover/own-pulumi";

/** What a command line says of the stack whose cluster it is about. */
export interface StackWords {
  readonly stack?: string;
  readonly state?: string;
}

/**
 * The stack that is meant, and its cluster by its outputs.
 *
 * @throws UserError when the outputs cannot be read, or are not those of a cluster
 */
export async function clusterOf(
  { stack: named, state }: StackWords,
  signal: AbortSignal,
): Promise<{ readonly stack: string; readonly cluster: Cluster }> {
  const folder = state ?? (named === undefined ? defaultState : undefined);
  const stack = named ?? (folder && hostSettings(folder) ? "machines" : "local");
  const cluster = await (folder === undefined
    ? ownCluster(stack, signal)
    : rehearsedCluster(resolve(folder), stack, signal));
  return { stack, cluster };
}

/** A stack of the user's own, by the pulumi and the backend of this shell. */
async function ownCluster(stack: string, signal: AbortSignal): Promise<Cluster> {
  const ended = await ownPulumi(checkout, signal)(wordsOf(stack));
  return clusterIn(ended, stack, `a rehearsal's stack: add --state ${defaultState}`);
}

/** A stack of a rehearsal that runs; nothing is started for it. */
async function rehearsedCluster(
  folder: string,
  stack: string,
  signal: AbortSignal,
): Promise<Cluster> {
  const state = rehearsalFolder(folder);
  const daemon = state === undefined ? undefined : runningDaemon(state);
  if (state === undefined || daemon === undefined) {
    throw new UserError(
      `no rehearsal runs in ${folder}: npm start begins one or continues it; for a stack on Azure, use --stack without --state`,
    );
  }
  const { binaries, ports } = daemon;
  const passphrase = passphraseOf(state);
  const engine = { binaries, state, program: checkout, passphrase, signal };
  const ended = await pulumi(wordsOf(stack), engine);
  const cluster = clusterIn(
    ended,
    stack,
    `a stack that was never rehearsed: npm start -- --stack ${stack}`,
  );
  return { ...cluster, proxy: proxyOf(ports) };
}

const wordsOf = (stack: string): string[] => [
  ...["stack", "output", "--json", "--show-secrets", "--stack", stack],
];

/** @throws UserError when the outputs are not those of a cluster */
export function clusterIn(
  { code, stdout, stderr }: Ended,
  stack: string,
  otherwise: string,
): Cluster {
  if (code !== 0) {
    throw new UserError(
      `the outputs of stack ${stack} cannot be read, since pulumi stack output ended with ${code}: ` +
        `${(stderr || stdout).trim()}\n  Name one of pulumi stack ls, in the backend and with the passphrase of pulumi up; or ${otherwise}`,
    );
  }
  const { kubeconfig, machines, cluster } = JSON.parse(stdout) as {
    kubeconfig?: string;
    machines?: Expected["machines"];
    cluster?: PreviousOutputs;
  };
  if (kubeconfig === undefined || machines === undefined) {
    throw new UserError(
      `stack ${stack} has no outputs kubeconfig and machines: run pulumi up until it ends well`,
    );
  }
  const { machines: records = {}, etcdBackups, encryptionKeys, cas } = cluster ?? {};
  // They are written when all machines have it.
  const kubernetesVersion = Object.values(records)[0]?.kubernetesVersion;
  return { kubeconfig, machines, kubernetesVersion, etcdBackups, encryptionKeys, cas };
}
