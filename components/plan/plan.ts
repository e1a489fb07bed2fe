import * as pulumi from "@pulumi/pulumi";

import { nodeImages } from "../add-ons/node-images";
import { apiPort, type ApiServer } from "../api-server";
import type { DiskClass, DiskEncryptionSet } from "../azure/disk-classes";
import type { Hardware } from "../azure/hardware";
import type { ExistingIdentity, WorkloadClients } from "../azure/identities";
import type { ExistingNetwork } from "../azure/existing-network";
import type { Registry } from "../azure/registries";
import { getDeallocations } from "../azure/size-offers";
import type { Shown } from "../azure/shown";
import type { AzureState } from "../azure/state";
import type { ClusterSpec } from "../kubeadm/kubeadm";
import { customData } from "../machine/custom-data";
import type { MachineRecord } from "../machine/generation";
import type { Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";
import { decide, type Decision } from "./decide";
import type { Federation } from "./federation";
import { etcdVersionProblems } from "./upgrade";
import { checkGate, type Gate } from "./gate";
import type { Initialization } from "./initialization";
import { hasLeft, type PreviousOutputs } from "./machine-changes";
import { observe, type Observed } from "./observe";
import { privateApiWarnings } from "./ways";
import { refuse } from "./engine";
import { unfinishedJoinProblems } from "./left-machines";
import { checkSnapshot } from "./wanted-snapshot";

/** All that is known before the first resource is registered. */
export interface Plan {
  readonly settings: Settings;
  readonly subscriptionId: string;
  readonly tenantId: string;
  readonly azure: AzureState;
  /** What Azure shows of resources that others write on too. */
  readonly shown: Shown;
  /** The identity that the settings name; undefined where they name none. */
  readonly existingIdentity?: ExistingIdentity;
  /** The identity that the settings name for kubelets; undefined where they name none. */
  readonly existingKubeletIdentity?: ExistingIdentity;
  /** The registries that the settings name. */
  readonly registries: readonly Registry[];
  /** Client ids of the identities that service accounts log in as and that exist already. */
  readonly workloadClients: WorkloadClients["clientIds"];
  /** The network of the subnets that the settings name; undefined where they name none. */
  readonly existingNetwork?: ExistingNetwork;
  readonly initialization: Initialization;
  /** What the last update that succeeded left in the stack's outputs. */
  readonly previous?: PreviousOutputs;
  /** The kubeconfig among the stack's outputs; undefined before there is one. */
  readonly previousKubeconfig?: string;
  /** What this update records of each machine, by its name. */
  readonly machineRecords: ReadonlyMap<string, MachineRecord>;
  /** Names of the machines that exist and are not replaced: what only a first boot reads is not theirs. */
  readonly retained: ReadonlySet<string>;
  /** By name of a machine that is off and stays so: why its bootstrap step must not run. */
  readonly stepRefusals: ReadonlyMap<string, string>;
  /** Names of those that are off, or that this update deallocates, and that it starts. */
  readonly started: ReadonlySet<string>;
  /** Names of the machines that Azure resizes only while they are deallocated. */
  readonly deallocated: ReadonlySet<string>;
  /** Of each machine's size, by the machine's name. */
  readonly hardware: ReadonlyMap<string, Hardware>;
  /** The StorageClasses of this cluster. */
  readonly diskClasses: readonly DiskClass[];
  /** The set that the settings name; undefined where they name none. */
  readonly diskEncryptionSet?: DiskEncryptionSet;
  readonly controlPlanes: readonly MachinePlan[];
  /** The same in the order in which they are touched. */
  readonly turns: readonly MachinePlan[];
  readonly workers: readonly MachinePlan[];
  /** What all members are configured with: CAs and keys of service accounts, of which the first one signs, and keys of Secrets. */
  readonly spec: ClusterSpec;
  readonly federation: Federation;
  /** First-boot data, the same for every machine. */
  readonly customData: string;
  readonly apiServer: ApiServer;
  /** Of a private API. */
  readonly apiAddress?: string;
  /** Upstream's manifests by path. */
  readonly manifests: ReadonlyMap<string, string>;
}

/**
 * Lays the settings beside what exists, and refuses what Azure would refuse later or what would lose
 * the cluster: everything wrong at once, before anything is created.
 *
 * @throws RunError with all problems
 */
export async function makePlan(settings: Settings): Promise<Plan> {
  const observed = await observe(settings);
  const decision = decide(observed);
  const { deallocated, repairFirst, warnings, problems } = await check(observed, decision);
  // Beside a refusal too, so that everything can be asked for at once.
  for (const warning of [...observed.warnings, ...warnings]) void pulumi.log.warn(warning);
  refuse(problems);
  announce(observed, decision, deallocated);

  const { connection, azure, previous } = observed;
  const manifests =
    typeof observed.manifests === "string" ? new Map<string, string>() : observed.manifests;
  return {
    settings,
    subscriptionId: connection.subscriptionId,
    tenantId: connection.tenantId,
    azure,
    shown: azure.shown,
    existingIdentity: observed.identity.identity,
    existingKubeletIdentity: observed.registries.identity,
    registries: observed.registries.registries,
    workloadClients: observed.workloads.clientIds,
    existingNetwork: observed.network,
    initialization: decision.initialization,
    previous: previous.outputs,
    previousKubeconfig: previous.kubeconfig,
    machineRecords: decision.machineRecords,
    retained: namesOf(decision.retained),
    stepRefusals: decision.stopped.stepRefusals,
    started: new Set([...decision.started, ...deallocated]),
    deallocated,
    hardware: decision.hardware,
    diskClasses: decision.diskClasses,
    diskEncryptionSet: observed.diskEncryption.set,
    controlPlanes: decision.controlPlanes,
    // The first by its number restores: an update that goes on with a restoration looks for it there.
    turns: decision.initialization.isRestoring
      ? decision.controlPlanes
      : turnsOf(decision.controlPlanes, azure, repairFirst),
    workers: decision.workers,
    spec: decision.spec,
    federation: decision.federation,
    customData: customData(settings, observed.apiName, nodeImages(settings, manifests)),
    apiServer: { name: observed.apiName, port: apiPort },
    apiAddress: observed.apiAddress,
    manifests,
  };
}

/** One that is not healthy comes first, then those that are out of the cluster. */
export function turnsOf(
  controlPlanes: readonly MachinePlan[],
  { machines }: Pick<AzureState, "machines">,
  repairFirst?: string,
): MachinePlan[] {
  const urgency = ({ name }: MachinePlan): number =>
    name === repairFirst ? 2 : hasLeft(machines.get(name)) ? 1 : 0;
  return [...controlPlanes].sort((a, b) => urgency(b) - urgency(a));
}

const namesOf = (machines: readonly MachinePlan[]): Set<string> =>
  new Set(machines.map(({ name }) => name));

/**
 * Asks what depends on the decision: whether Azure resizes these machines while they run, and whether
 * the living cluster can bear these changes. What is stopped cannot be asked. Its problems are those of
 * the decision and of all answers.
 */
async function check(observed: Observed, decision: Decision) {
  const { settings, connection, azure, now, offers, previous } = observed;
  const { initialization, changes, controlPlanes, current, started, stopped, resized } = decision;
  const { kubeconfig } = previous;
  const isStopped = stopped.problems.length > 0;
  const gateArgs = {
    settings,
    initialization,
    changes: changes.filter(({ machine }) => !azure.machines.get(machine)?.removedFromEtcd),
    controlPlanes,
    azure,
    started,
    previous: current?.initialization === initialization.id ? current : undefined,
    kubeconfig,
    now,
  };
  const deallocated = await getDeallocations(
    resized,
    azure.machines,
    offers.skus,
    settings,
    connection,
  );
  const gate: Gate = isStopped ? { problems: stopped.problems } : await checkGate(gateArgs);
  const isLiving = initialization.exists && !initialization.isRestoring;
  // What is not well is not asked for its version or its members.
  const isWell = isLiving && !isStopped && gate.problems.length === 0;
  const etcdProblems = isWell
    ? [...(await etcdVersionProblems(gateArgs)), ...(await unfinishedJoinProblems(gateArgs))]
    : [];
  const reach = await privateApiWarnings({
    settings,
    apiName: observed.apiName,
    address: observed.apiAddress,
    network: observed.network,
    kubeconfig: isLiving ? kubeconfig : undefined,
  });
  const snapshot = await checkSnapshot({ settings, initialization, kubeconfig, now });
  return {
    problems: [...decision.problems, ...gate.problems, ...etcdProblems, ...snapshot.problems],
    deallocated,
    repairFirst: gate.repairFirst,
    warnings: [...initialization.warnings, ...snapshot.warnings, ...decision.warnings, ...reach],
  };
}

/** Says in the preview what the update does to existing machines, and what else there is to know. */
function announce(
  { azure }: Observed,
  { changes, stopped, messages }: Decision,
  deallocated: ReadonlySet<string>,
): void {
  for (const { machine, action, reasons } of changes) {
    const way = deallocated.has(machine) ? ["deallocated for it, and started again"] : [];
    const all = [...reasons, ...way];
    void pulumi.log.info(
      `this change would ${action} ${machine}${all.length > 0 ? `: ${all.join(", ")}` : ""}`,
    );
  }
  if (stopped.off.length > 0) {
    const names = stopped.off.map((name) => `${name} is ${azure.machines.get(name)!.power}`);
    void pulumi.log.info(`${names.join(", ")}, and stays so`);
  }
  for (const message of messages) void pulumi.log.info(message);
}
