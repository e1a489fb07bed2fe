import { setTimeout as pause } from "node:timers/promises";

import * as pulumi from "@pulumi/pulumi";

import { apiName } from "../api-server";
import { ApiServer } from "../api-server";
import { configurationOf } from "../kubeadm/kubeadm";
import { apiPort } from "../api-server";
import type { RotatingKeys } from "../kubeadm/rotation";
import { customData } from "../machine/custom-data";
import { generationOf, madeWith } from "../machine/generation";
import { runOf } from "../machine/machine-record";
import { addressProblems, PlacedMachine } from "./addresses";
import { planAuthorities } from "./authorities";
import { connect } from "../azure/connection";
import { askDeallocations } from "../azure/resize-offers";
import { isSameSize } from "../azure/size-offers";
import { acceleratedMachines, askOffers, offerProblems } from "../azure/offers";
import { Shown } from "../azure/shown";
import { askAzure, AzureState } from "../azure/state";
import { DiskClass, planDiskClasses } from "../azure/disk-classes";
import { subscriptionProblems } from "../azure/subscription";
import { cloudProviderProblems } from "../add-ons/manifests/cloud-provider-images";
import { fixedProblems } from "./fixed-settings";
import { askGate } from "./gate";
import { decideInitialization, Initialization } from "./initialization";
import { markLeft } from "./left-control-planes";
import { createdMachines, machineChanges, Memory, memoryOf } from "./machine-changes";
import { MachineMemory } from "../machine/machine-record";
import { findManifests, manifestsFor } from "../add-ons/manifests/manifests";
import { proxyRollOutProblems } from "./proxy-roll-out";
import { leavingOf, planKeys } from "./secrets-keys";
import { Settings } from "../settings/settings";
import { startedMachines, stoppedMachines } from "./stopped-machines";
import { isControlPlaneName, MachinePlan, machinesOf } from "../settings/topology";
import { upgradeProblems } from "./upgrade";
import { askSnapshot } from "./wanted-snapshot";

/** All that is known before the first resource is registered. */
export interface Plan {
  readonly settings: Settings;
  readonly subscriptionId: string;
  readonly tenantId: string;
  readonly azure: AzureState;
  /** What Azure shows of the resources that others write on too. */
  readonly shown: Shown;
  readonly initialization: Initialization;
  /** What the last `up` that ended well has left in the stack's outputs. */
  readonly memory?: Memory;
  /** The control plane that is made well before any other machine is touched. */
  readonly firstControlPlane?: string;
  /** What this `up` orders of each machine, by its name. */
  readonly orders: ReadonlyMap<string, MachineMemory>;
  /** Names of the machines that exist and stay: what only a first boot reads is not theirs. */
  readonly kept: ReadonlySet<string>;
  /**
   * Whether API servers know kubelets by the cluster's CA. In a cluster that is older than that,
   * every kubelet has to have its certificate before: one `up` earlier.
   */
  readonly verifiesKubelets: boolean;
  /** By name of a machine that is off and stays so: why its bootstrap step must not run. */
  readonly stepRefusals: ReadonlyMap<string, string>;
  /** Names of those that are off, or that this `up` deallocates, and that it starts. */
  readonly started: ReadonlySet<string>;
  /** Names of the machines that Azure resizes only while they are deallocated. */
  readonly deallocated: ReadonlySet<string>;
  /** Names of the machines whose size has accelerated networking. */
  readonly accelerated: ReadonlySet<string>;
  /** The StorageClasses of this cluster. */
  readonly diskClasses: readonly DiskClass[];
  readonly controlPlanes: readonly MachinePlan[];
  readonly workers: readonly MachinePlan[];
  /** The keys that Secrets are encrypted with; nothing where the operator sees to that. */
  readonly secretsKeys?: RotatingKeys;
  /** The CAs that machines trust; the first one signs. */
  readonly authorities: RotatingKeys;
  /** First-boot data, the same for every machine. */
  readonly customData: string;
  readonly apiServer: ApiServer;
  /** Upstream's manifests by path. */
  readonly texts: ReadonlyMap<string, string>;
}

/**
 * Lays the settings beside the Azure state, and refuses what Azure would refuse later or what
 * would lose the cluster: everything wrong at once, before anything is created.
 *
 * @throws RunError with all problems
 */
export async function makePlan(settings: Settings): Promise<Plan> {
  const now = new Date().toISOString();
  const { memory, kubeconfig, placed } = await remember();
  refuse(fixedProblems(settings, memory?.settings));
  const connection = await connect(settings);
  const api = apiName(settings, connection.subscriptionId);
  const machines = machinesOf(settings);
  const controlPlanes = machines.filter(({ role }) => role === "control-plane");
  const workers = machines.filter(({ role }) => role === "worker");
  const asked = askAzure(settings, connection);
  const [{ shown }, azure, lacking, offers, manifests] = await Promise.all([
    asked,
    asked.then((found) => markLeft({ settings, controlPlanes, azure: found, kubeconfig, now })),
    asked.then(async ({ groupState }) => {
      if (groupState !== undefined) return [];
      const problems = await Promise.all([
        subscriptionProblems(settings, connection, api),
        cloudProviderProblems(settings),
      ]);
      return problems.flat();
    }),
    askOffers(settings, connection),
    findManifests(manifestsFor(settings), settings).catch(
      ({ message }: pulumi.RunError) => message,
    ),
  ]);
  const data = customData(settings);
  const verifiesKubelets = memory === undefined || memory.kubeletCertificates === true;
  const made = machines.map((plan) => ({
    plan,
    generation: generationOf(plan, settings),
    madeWith: madeWith(plan, settings),
    imageVersion: settings.imageVersion,
    kubernetesVersion: settings.kubernetesVersion,
  }));

  const initialization = decideInitialization(
    settings,
    made.filter(({ plan }) => plan.role === "control-plane"),
    azure,
    memory,
    now,
  );
  const current = memoryOf(initialization.id, memory);
  const {
    secretsKeys,
    message: keysMessage,
    problem,
  } = planKeys({
    settings,
    id: initialization.id,
    controlPlanes,
    azure,
    memory: current,
  });
  const created = createdMachines(initialization.id, made, azure, current);
  const { authorities, message: authoritiesMessage } = planAuthorities({
    settings,
    id: initialization.id,
    controlPlanes,
    created,
    azure,
    memory: current,
  });
  const wanted = made.map((one) => ({
    ...one,
    configuration: configurationOf(
      settings,
      one.plan,
      api,
      verifiesKubelets,
      secretsKeys,
      authorities,
    ),
  }));
  const isSafe = initialization.exists && initialization.problems.length === 0;
  const { isRestoring } = initialization;
  const changes = (isSafe ? machineChanges(initialization.id, wanted, azure, current) : []).filter(
    ({ machine }) => !isRestoring || !isControlPlaneName(settings, machine),
  );
  const remade = controlPlanes
    .filter((machine) => current?.machines[machine.name] !== undefined && created.includes(machine))
    .map(({ name }) => name);
  const isReplaced = (name: string): boolean =>
    !azure.machines.get(name)?.hasLeftEtcd &&
    changes.some(({ machine, does }) => machine === name && does === "replace");
  const versions = upgradeProblems(settings, azure, current, {
    lost: remade.filter((name) => !isReplaced(name)),
    replaced: remade.filter(isReplaced),
    removed: leavingOf({ settings, controlPlanes, azure }),
  });
  const kept = machines.filter((machine) => !created.includes(machine));
  const resized = kept.filter(
    ({ name, size }) => !isSameSize(azure.machines.get(name)!.size, size),
  );
  const deallocated = await askDeallocations(resized, azure.machines, settings, connection);
  const started = new Set(startedMachines(kept, azure));
  const stopped = stoppedMachines({ settings, initialization, azure, kept, changes, started });
  const gateArgs = {
    settings,
    initialization,
    changes: changes.filter(({ machine }) => !azure.machines.get(machine)?.hasLeftEtcd),
    controlPlanes,
    azure,
    started,
    memory: current?.initialization === initialization.id ? current : undefined,
    kubeconfig,
    now,
  };
  const isStopped = stopped.problems.length > 0;
  const gate = isStopped ? { problems: stopped.problems } : await askGate(gateArgs);
  const keptNames = new Set(kept.map(({ name }) => name));
  const proxyArgs = { settings, changes, kept: keptNames, kubeconfig, now, memory: current };
  const silent = isStopped ? [] : await proxyRollOutProblems(proxyArgs);
  const snapshot = await askSnapshot({ settings, initialization, kubeconfig, now });
  const texts = typeof manifests === "string" ? new Map<string, string>() : manifests;
  refuse([
    ...lacking,
    ...(typeof manifests === "string" ? [manifests.replaceAll("\n", "\n    ")] : []),
    ...offerProblems(machines, created, azure.machines, offers, settings, connection),
    ...initialization.problems,
    // Before a first `up` has ended well, Azure alone tells where the cluster is.
    ...(initialization.exists ? fixedProblems(settings, { location: azure.groupLocation }) : []),
    ...(initialization.exists ? addressProblems(machines, placed) : []),
    ...(initialization.exists ? versions : []),
    ...(problem === undefined ? [] : [problem]),
    ...gate.problems,
    ...snapshot.problems,
    ...silent,
  ]);
  for (const { machine, does, why } of changes) {
    const way = deallocated.has(machine) ? ["deallocated for it, and started again"] : [];
    const reason = [...why, ...way].length > 0 ? `: ${[...why, ...way].join(", ")}` : "";
    void pulumi.log.info(`this change would ${does} ${machine}${reason}`);
  }
  if (stopped.off.length > 0) {
    const names = stopped.off.map((name) => `${name} is ${azure.machines.get(name)!.power}`);
    void pulumi.log.info(`${names.join(", ")}, and stays so`);
  }
  if (!verifiesKubelets) {
    void pulumi.log.info(
      "this up gives every kubelet a certificate of the cluster's CA. Run pulumi up again when it has ended: " +
        "it makes the API servers refuse kubelets that have none",
    );
  }
  for (const text of [keysMessage, authoritiesMessage]) {
    if (text !== undefined) void pulumi.log.info(text);
  }
  const diskClasses = planDiskClasses(settings, offers, current);
  if (current === undefined) {
    for (const { name, skuName, zone } of diskClasses.leftOut) {
      const place = `${zone === undefined ? "" : `zone ${zone} of `}${settings.location}`;
      void pulumi.log.info(
        `StorageClass ${name} is left out: Azure offers this subscription no ${skuName} disks in ${place}`,
      );
    }
  }
  for (const warning of [...initialization.warnings, ...snapshot.warnings]) {
    void pulumi.log.warn(warning);
  }
  const orders = wanted.map((one): [string, MachineMemory] => {
    const { generation } = one;
    const { name } = one.plan;
    const machine = azure.machines.get(name);
    const remembered = current?.machines[name];
    return [
      name,
      {
        generation,
        madeWith: one.madeWith,
        // A machine that was deleted is ordered anew, whether or not Pulumi's state knows that
        // it is gone.
        made:
          (machine === undefined || machine.hasLeftEtcd
            ? undefined
            : (machine.made ?? remembered?.made)) ?? now,
        kubernetesVersion: one.kubernetesVersion,
        configuration: one.configuration,
        run: keptNames.has(name) ? runOf(machine?.bootstrap, remembered?.run, now) : now,
      },
    ];
  });
  const { subscriptionId, tenantId } = connection;
  return {
    settings,
    subscriptionId,
    tenantId,
    azure,
    shown,
    initialization,
    memory,
    firstControlPlane: gate.first,
    orders: new Map(orders),
    kept: keptNames,
    stepRefusals: stopped.stepRefusals,
    started: new Set([...started, ...deallocated]),
    deallocated,
    verifiesKubelets,
    accelerated: acceleratedMachines(machines, offers),
    diskClasses: diskClasses.made,
    controlPlanes,
    workers,
    secretsKeys,
    authorities,
    customData: data,
    apiServer: { name: api, port: apiPort },
    texts,
  };
}

function refuse(problems: readonly string[]): void {
  if (problems.length === 0) return;
  throw new pulumi.RunError(
    `stack ${pulumi.getStack()} cannot be deployed:\n  - ${problems.join("\n  - ")}`,
  );
}

/** A backend in files is written anew with every step, and may be read while it is. */
const attempts = 10;
const pauseMilliseconds = 300;

/**
 * What the last `up` that ended well left in this very stack's outputs.
 *
 * Asked as a function, not as a StackReference: that would copy all outputs into the state, and
 * could not be tried again.
 */
async function remember(attempt = 1): Promise<{
  readonly memory?: Memory;
  readonly kubeconfig?: string;
  readonly placed: readonly PlacedMachine[];
}> {
  const name = `${pulumi.getOrganization()}/${pulumi.getProject()}/${pulumi.getStack()}`;
  try {
    const { outputs } = await pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", { name });
    return {
      memory: outputs?.cluster as Memory | undefined,
      kubeconfig: outputs?.kubeconfig,
      placed: outputs?.machines ?? [],
    };
  } catch (error) {
    if (attempt === attempts) throw error;
    await pause(pauseMilliseconds);
    return remember(attempt + 1);
  }
}
