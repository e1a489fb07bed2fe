import { resolve } from "node:path";

import type { PreviousOutputs } from "../../components/plan/machine-changes";
import type { Expected } from "../doctor/check";
import type { Cluster } from "../doctor/doctor";
import { type Ports, proxyOf, runningDaemon } from "../local-azure/daemon/attachment";
import { hostSettings } from "../local-azure/machines/qemu/host";
import { passphraseOf } from "../local-azure/rehearsal/settings";
import { defaultState, rehearsalFolder } from "../local-azure/rehearsal/state-folder";
import { type Ended, pulumi } from "../pulumi/pulumi";
import { ownPulumi } from "../recover/own-pulumi";
import { checkout } from "../shared/checkout";
import { UserError } from "../shared/user-error";

/** What a command line says of the stack that it is about. */
export interface StackWords {
  readonly stack?: string;
  readonly state?: string;
}

/** A stack, and the pulumi that has its state. */
export interface Stack {
  readonly name: string;
  readonly pulumi: (args: readonly string[]) => Promise<Ended>;
  /** What else may have been meant by a name that this pulumi does not know. */
  readonly otherwise: string;
  /** Of the local Azure that a rehearsal's stack is on. */
  readonly ports?: Ports;
}

/**
 * The stack that is meant; nothing is started for it.
 *
 * @throws UserError when it is a rehearsal's, and none runs
 */
export function stackOf({ stack: named, state }: StackWords, signal: AbortSignal): Stack {
  const folder = state ?? (named === undefined ? defaultState : undefined);
  const name = named ?? (folder && hostSettings(folder) ? "machines" : "local");
  return folder === undefined ? ownStack(name, signal) : rehearsed(resolve(folder), name, signal);
}

const withoutPulumi =
  " (the stacks of npm start need none: leave --stack out, or name the folder by --state)";

/** A stack of the user's own, by the pulumi and the backend of this shell. */
const ownStack = (name: string, signal: AbortSignal): Stack => ({
  name,
  pulumi: ownPulumi(checkout, signal, process.env, withoutPulumi),
  otherwise: `a rehearsal's stack: add --state ${defaultState}`,
});

function rehearsed(folder: string, name: string, signal: AbortSignal): Stack {
  const state = rehearsalFolder(folder);
  const daemon = state === undefined ? undefined : runningDaemon(state);
  if (state === undefined || daemon === undefined) {
    throw new UserError(
      `no rehearsal runs in ${folder}: npm start begins one or continues it; for a stack on Azure, use --stack without --state`,
    );
  }
  const { binaries, ports } = daemon;
  const engine = { binaries, state, program: checkout, passphrase: passphraseOf(state), signal };
  return {
    ...{ name, ports },
    pulumi: (args) => pulumi(args, engine),
    otherwise: `a stack that was never rehearsed: npm start -- --stack ${name}`,
  };
}

/**
 * What a command of pulumi that reads this stack prints.
 *
 * @param what it reads, for the message
 * @throws UserError when it cannot be read
 */
export async function readStack(
  { name, pulumi, otherwise }: Stack,
  what: string,
  command: readonly string[],
): Promise<string> {
  const { code, stdout, stderr } = await pulumi([...command, "--stack", name]);
  if (code === 0) return stdout;
  throw new UserError(
    `the ${what} of stack ${name} cannot be read, since pulumi ${command.slice(0, 2).join(" ")} ended with ${code}: ` +
      `${(stderr || stdout).trim()}\n  Name one of pulumi stack ls, in the backend and with the passphrase of pulumi up; or ${otherwise}`,
  );
}

/**
 * The stack that is meant, and its cluster by its outputs.
 *
 * @throws UserError when the outputs cannot be read, or are not those of a cluster
 */
export async function clusterOf(
  words: StackWords,
  signal: AbortSignal,
): Promise<{ readonly stack: string; readonly cluster: Cluster }> {
  const stack = stackOf(words, signal);
  const { name, ports } = stack;
  const command = ["stack", "output", "--json", "--show-secrets"];
  const outputs = await readStack(stack, "outputs", command);
  const cluster = clusterIn(outputs, name);
  return { stack: name, cluster: ports ? { ...cluster, proxy: proxyOf(ports) } : cluster };
}

/** @throws UserError when the outputs are not those of a cluster */
export function clusterIn(outputs: string, stack: string): Cluster {
  const { kubeconfig, machines, cluster } = JSON.parse(outputs) as {
    kubeconfig?: string;
    machines?: Expected["machines"];
    cluster?: PreviousOutputs;
  };
  if (kubeconfig === undefined || machines === undefined) {
    throw new UserError(
      `stack ${stack} has no outputs kubeconfig and machines: run pulumi up until it ends well`,
    );
  }
  const {
    machines: records = {},
    apiAddress,
    etcdBackups,
    issuer,
    encryptionKeys,
    cas,
    serviceAccountKeys,
    addOns,
  } = cluster ?? {};
  // They are written when all machines have it.
  const kubernetesVersion = Object.values(records)[0]?.kubernetesVersion;
  return {
    ...{ kubeconfig, machines, kubernetesVersion, apiAddress, etcdBackups, issuer },
    ...{ encryptionKeys, cas, serviceAccountKeys, addOns },
  };
}
