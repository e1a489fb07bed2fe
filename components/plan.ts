import { setTimeout as pause } from "node:timers/promises";

import * as pulumi from "@pulumi/pulumi";

import { ApiServer } from "./add-ons/api-server";
import { apiName } from "./api-balancer";
import { connect } from "./azure-connection";
import { askAzure, AzureState } from "./azure-state";
import { customData } from "./boot";
import { askGate } from "./gate";
import { generationOf } from "./generation";
import { decideInitialization, Initialization } from "./initialization";
import { apiPort } from "./kubeadm";
import { machineChanges, MachineMemory, Memory, memoryOf } from "./machine-changes";
import { runOf } from "./machine";
import { findManifests, manifestsFor } from "./manifests";
import { askOffers, offerProblems } from "./offers";
import { Settings } from "./settings";
import { Machine, machinesOf } from "./topology";

/** All that is known before the first resource is registered. */
export interface Plan {
  readonly settings: Settings;
  readonly subscriptionId: string;
  readonly tenantId: string;
  readonly azure: AzureState;
  readonly initialization: Initialization;
  /** The control plane that is made well before any other machine is touched. */
  readonly firstControlPlane?: string;
  /** What this `up` orders of each machine, by its name. */
  readonly orders: ReadonlyMap<string, MachineMemory>;
  /** kube-proxy's mode before the one that the settings name; undefined while there was none. */
  readonly proxyModeBefore?: Settings["proxyMode"];
  readonly controlPlanes: readonly Machine[];
  readonly workers: readonly Machine[];
  /** First-boot data, the same for every machine. */
  readonly customData: string;
  readonly apiServer: ApiServer;
  /** Upstream's manifests by path. */
  readonly texts: ReadonlyMap<string, string>;
}

/**
 * Lays the settings beside what Azure knows, and refuses what Azure would refuse later or what would lose
 * the cluster: everything wrong at once, before anything is created.
 *
 * @throws RunError with all problems
 */
export async function makePlan(settings: Settings): Promise<Plan> {
  const now = new Date().toISOString();
  const connection = await connect(settings);
  const [azure, offers, { memory, kubeconfig }, texts] = await Promise.all([
    askAzure(settings, connection),
    askOffers(settings, connection),
    remember(),
    findManifests(manifestsFor(settings), settings),
  ]);
  const machines = machinesOf(settings);
  const controlPlanes = machines.filter(({ role }) => role === "control-plane");
  const workers = machines.filter(({ role }) => role === "worker");
  const data = customData(settings);
  const wanted = machines.map((plan) => ({ plan, generation: generationOf(plan, settings, data) }));

  const initialization = decideInitialization(
    settings,
    wanted.filter(({ plan }) => plan.role === "control-plane"),
    azure,
    memory,
    now,
  );
  const current = memoryOf(initialization.id, memory);
  const isSafe = initialization.exists && initialization.problems.length === 0;
  const changes = isSafe ? machineChanges(initialization.id, wanted, azure, current) : [];
  const gate = await askGate({
    settings,
    initialization,
    changes,
    controlPlanes,
    azure,
    memory: current,
    kubeconfig,
    now,
  });
  const problems = [
    ...offerProblems(wanted, azure.machines, offers, settings, connection),
    ...initialization.problems,
    ...gate.problems,
  ];
  if (problems.length > 0) {
    throw new pulumi.RunError(
      `stack ${pulumi.getStack()} cannot be deployed:\n  - ${problems.join("\n  - ")}`,
    );
  }
  for (const warning of initialization.warnings) void pulumi.log.warn(warning);
  const orders = wanted.map(({ plan: { name }, generation }): [string, MachineMemory] => {
    const machine = azure.machines.get(name);
    const remembered = current?.machines[name];
    return [
      name,
      {
        generation,
        // A machine that somebody deleted is ordered anew, whether or not Pulumi's state knows that it is gone.
        made: (machine === undefined ? undefined : (machine.made ?? remembered?.made)) ?? now,
        run: runOf(machine?.bootstrap, remembered?.run, now),
      },
    ];
  });
  const { subscriptionId, tenantId } = connection;
  return {
    settings,
    subscriptionId,
    tenantId,
    azure,
    initialization,
    firstControlPlane: gate.first,
    orders: new Map(orders),
    proxyModeBefore: modeBefore(settings, memory),
    controlPlanes,
    workers,
    customData: data,
    apiServer: { name: apiName(settings, subscriptionId), port: apiPort },
    texts,
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
async function remember(
  attempt = 1,
): Promise<{ readonly memory?: Memory; readonly kubeconfig?: string }> {
  const name = `${pulumi.getOrganization()}/${pulumi.getProject()}/${pulumi.getStack()}`;
  try {
    const { outputs } = await pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", { name });
    return { memory: outputs?.cluster as Memory | undefined, kubeconfig: outputs?.kubeconfig };
  } catch (error) {
    if (attempt === attempts) throw error;
    await pause(pauseMilliseconds);
    return remember(attempt + 1);
  }
}
