import { setTimeout as pause } from "node:timers/promises";

import * as pulumi from "@pulumi/pulumi";

import { ApiServer } from "./add-ons/api-server";
import { apiName } from "./api-balancer";
import { askAzure, AzureFacts } from "./azure-facts";
import { customData } from "./boot";
import { decideFounding, Founding, Memory } from "./founding";
import { generationOf } from "./generation";
import { apiPort } from "./kubeadm";
import { findManifests, manifestsFor } from "./manifests";
import { Settings } from "./settings";
import { sizeProblems } from "./size-offers";
import { Machine, machinesOf } from "./topology";

/** All that is known before the first resource is registered. */
export interface Plan {
  readonly settings: Settings;
  readonly subscriptionId: string;
  readonly tenantId: string;
  readonly azure: AzureFacts;
  readonly founding: Founding;
  /** kube-proxy's mode before the one that the settings name; undefined while there was none. */
  readonly proxyModeBefore?: Settings["proxyMode"];
  readonly controlPlanes: readonly Machine[];
  readonly workers: readonly Machine[];
  /** First-boot data, the same for every machine. */
  readonly customData: string;
  readonly apiServer: ApiServer;
  /** Upstream's manifests by path. */
  readonly texts: ReadonlyMap<string, string>;
  /** When this program started. */
  readonly now: string;
}

/**
 * Lays the settings beside what Azure knows, and refuses what Azure would refuse later or what would lose
 * the cluster: everything wrong at once, before anything is created.
 *
 * @throws RunError with all problems
 */
export async function makePlan(settings: Settings): Promise<Plan> {
  const [azure, memory, texts] = await Promise.all([
    askAzure(settings),
    remember(),
    findManifests(manifestsFor(settings), settings),
  ]);
  const machines = machinesOf(settings);
  const controlPlanes = machines.filter(({ role }) => role === "control-plane");
  const workers = machines.filter(({ role }) => role === "worker");
  const data = customData(settings);

  const founding = decideFounding(
    settings,
    controlPlanes.map((plan) => ({ plan, generation: generationOf(plan, settings, data) })),
    azure,
    memory,
  );
  const problems = [
    ...sizeProblems(machines, azure.skus, {
      location: settings.location,
      osDiskSku: settings.osDiskSku,
      command: (machine) => sizeCommand(settings, machine),
    }),
    ...founding.problems,
  ];
  if (problems.length > 0) {
    throw new pulumi.RunError(
      `stack ${pulumi.getStack()} cannot be deployed:\n  - ${problems.join("\n  - ")}`,
    );
  }
  const { subscriptionId, tenantId } = azure;
  return {
    settings,
    subscriptionId,
    tenantId,
    azure,
    founding,
    proxyModeBefore: modeBefore(settings, memory),
    controlPlanes,
    workers,
    customData: data,
    apiServer: { name: apiName(settings, subscriptionId), port: apiPort },
    texts,
    now: new Date().toISOString(),
  };
}

/** Remembered as long as the mode stays, so that the next `up` says of kube-proxy what this one said. */
const modeBefore = ({ proxyMode }: Settings, memory: Memory | undefined) =>
  memory?.proxyMode === proxyMode ? memory.proxyModeBefore : memory?.proxyMode;

/** A backend in files is written anew with every step, and may be read while it is. */
const attempts = 10;
const pauseMilliseconds = 300;

/**
 * What the last `up` that ended well left in this very stack's outputs.
 *
 * Asked as a function, not as a StackReference: that would copy all outputs into the state, and could not be tried again.
 */
async function remember(attempt = 1): Promise<Memory | undefined> {
  const name = `${pulumi.getOrganization()}/${pulumi.getProject()}/${pulumi.getStack()}`;
  try {
    const answer = await pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", { name });
    return answer.outputs?.cluster as Memory | undefined;
  } catch (error) {
    if (attempt === attempts) throw error;
    await pause(pauseMilliseconds);
    return remember(attempt + 1);
  }
}

const sizeCommand = ({ workerPools }: Settings, { pool }: Machine): string =>
  pool === undefined
    ? "pulumi config set controlPlaneSize"
    : `pulumi config set --path 'workerPools[${workerPools.findIndex(({ name }) => name === pool)}].size'`;
