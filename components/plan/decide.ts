import { type DiskClass, planDiskClasses } from "../azure/disk-classes";
import { hasBalancer, hasInterface, interfaceAddresses } from "../azure/free-addresses";
import { type Hardware, hardwareOf } from "../azure/hardware";
import { imageWarnings, isOfGallery } from "../azure/image-offers";
import { offerProblems } from "../azure/offers";
import { shownAs } from "../azure/shown";
import { isSameSize } from "../azure/size-offers";
import { type ClusterSpec, configurationOf } from "../kubeadm/kubeadm";
import {
  bootstrapRequestTime,
  generationOf,
  type MachineRecord,
  replacementInputsOf,
} from "../machine/generation";
import { isControlPlaneName, type MachinePlan } from "../settings/topology";
import { addressProblems, subnetProblems } from "./addresses";
import {
  leavingControlPlanes,
  planCas,
  planEncryptionKeys,
  planServiceAccountKeys,
} from "./rotations";
import { existingGroupProblems, lacksTags, lockWarnings } from "./existing-group";
import { type Federation, planFederation, planTokenIssuers } from "./federation";
import { changedProblems, fixedDigest, fixedInAzure, fixedProblems } from "./fixed-settings";
import { decideInitialization, type Initialization } from "./initialization";
import {
  createdMachines,
  hasLeft,
  type MachineChange,
  machineChanges,
  previousOf,
  type PreviousOutputs,
  type WantedMachine,
} from "./machine-changes";
import { networkMessages, networkProblems, networkWarnings } from "./network-requests";
import type { Observed } from "./observe";
import { policyProblems, policyWarnings } from "./policies";
import { ownRoutesWarnings } from "./ways";
import { startedMachines, stoppedMachines } from "./stopped-machines";
import { tokenIssuerOf } from "../token-issuer";
import { upgradeProblems } from "./upgrade";

/** What an update does, as far as that follows from what was read. */
export interface Decision {
  readonly initialization: Initialization;
  /** The previous outputs, if they are of this initialization or one that it was restored from. */
  readonly current: PreviousOutputs | undefined;
  readonly controlPlanes: readonly MachinePlan[];
  readonly workers: readonly MachinePlan[];
  /** What this update would do to existing machines. */
  readonly changes: readonly MachineChange[];
  /** Machines that exist and are not replaced. */
  readonly retained: readonly MachinePlan[];
  /** Those of them that get another size. */
  readonly resized: readonly MachinePlan[];
  /** Names of those that are off and that this update starts. */
  readonly started: ReadonlySet<string>;
  readonly stopped: ReturnType<typeof stoppedMachines>;
  /** What this update records of each machine, by its name. */
  readonly machineRecords: ReadonlyMap<string, MachineRecord>;
  readonly spec: ClusterSpec;
  readonly federation: Federation;
  /** Of each machine's size, by the machine's name. */
  readonly hardware: ReadonlyMap<string, Hardware>;
  readonly diskClasses: readonly DiskClass[];
  /** Why this update must not begin, one sentence each. */
  readonly problems: readonly string[];
  /** What may be a mistake, or is somebody else's to do. */
  readonly warnings: readonly string[];
  /** What is to be said of it. */
  readonly messages: readonly string[];
}

/** Pulumi's state has objects in the cluster as they were before it was lost. */
const refreshText =
  "this update restores the cluster as it was when the snapshot was saved. When it has ended, run pulumi config rm restoreFrom and " +
  "pulumi up --refresh, which brings back what this program has changed in it since then";

const withoutDriverText =
  "this update takes Azure's disk driver and the snapshot controller away, since diskDriver is false: no volume on a disk of Azure's is attached, " +
  "made or deleted from then on, and no VolumeSnapshot. Those that exist stay, with their disks and snapshots in Azure; " +
  "pulumi config set diskDriver true takes them up again";

/** Lays the settings beside what exists. */
export function decide(observed: Observed): Decision {
  const { settings, azure, offers, connection, now, previous, legacyTokens, machines } = observed;
  const controlPlanes = machines.filter(({ role }) => role === "control-plane");
  const workers = machines.filter(({ role }) => role === "worker");
  const hardware = hardwareOf(machines, offers, previous.outputs?.machines);
  const planned = machines.map((plan) => {
    const own = hardware.get(plan.name)!;
    return {
      plan,
      generation: generationOf(plan, settings, own),
      replacementInputs: replacementInputsOf(plan, settings, own),
      // With an image it is what that begins with, and no machine is made of it.
      imageVersion: isOfGallery(settings, own.architecture) ? "" : settings.imageVersion,
      kubernetesVersion: settings.kubernetesVersion,
    };
  });

  const initialization = decideInitialization(
    settings,
    planned.filter(({ plan }) => plan.role === "control-plane"),
    azure,
    previous.outputs,
    now,
  );
  const { id, exists } = initialization;
  const current = previousOf(id, previous.outputs);
  const fixed = fixedDigest(settings);
  const begunOtherwise = machines.filter(
    ({ name }) => (azure.machines.get(name)?.bootstrap?.fixed ?? fixed) !== fixed,
  );
  // What is initialized takes no others, and nothing is in it before that step has ended well.
  const misbegun = exists ? [] : begunOtherwise;
  const created = [...new Set([...createdMachines(id, planned, azure, current), ...misbegun])];
  const { outputs } = previous;
  const rotation = { settings, id, controlPlanes, azure, previous: current, outputs };
  const keys = planEncryptionKeys(rotation);
  const cas = planCas({ ...rotation, workers, created });
  const accounts = planServiceAccountKeys({ ...rotation, legacyTokens, now });
  const issuers = planTokenIssuers(settings, connection.subscriptionId, current);
  const federation = planFederation(
    settings,
    issuers.isKnownToEntra,
    current,
    observed.loginProblem,
  );
  const spec: ClusterSpec = {
    settings,
    apiName: observed.apiName,
    cas: cas.cas,
    serviceAccountKeys: accounts.serviceAccountKeys,
    tokenIssuers: issuers.tokenIssuers,
    publishedIssuer: tokenIssuerOf(settings, connection.subscriptionId),
    registries: observed.registries.registries.map(({ server }) => server),
    encryptionKeys: keys.encryptionKeys,
  };
  const wanted = planned.map((one) => ({
    ...one,
    configuration: configurationOf(spec, one.plan),
  }));

  const changes = changesOf(observed, initialization, wanted, current);
  const retained = machines.filter((machine) => !created.includes(machine));
  const started = new Set(startedMachines(retained, azure));
  const diskClasses = planDiskClasses(settings, offers, current);
  const { subscriptionId } = connection;
  const isKnown = previous.outputs !== undefined;
  const group = { azure, isKnown, locks: observed.locks, subscriptionId, machines, changes };
  const hasArm = [...hardware.values()].some(({ architecture }) => architecture === "arm64");
  const network = networkProblems(settings, {
    hasArm,
    network: observed.network,
    created: machines.filter(({ name }) => !hasInterface(azure.shown, name)),
    addresses: machines.map(({ address }) => address).concat(observed.apiAddress ?? []),
    hasBalancer: hasBalancer(azure.shown, settings.clusterName),
    isLinked: azure.shown.has(
      shownAs("azure-native:privatedns:VirtualNetworkLink", settings.clusterName),
    ),
    areAddressesUnknown: observed.areAddressesUnknown,
    exists,
    subscriptionId,
  });
  const refused = observed.addedIdentities.map(({ machines: names, problem }) => ({
    problem,
    isChanged: changes.some(
      ({ machine, action }) =>
        (action === "replace" || action === "resize") && names.includes(machine),
    ),
  }));
  const unknownManifests = typeof observed.manifests === "string" ? [observed.manifests] : [];
  return {
    initialization,
    current,
    controlPlanes,
    workers,
    changes,
    retained,
    resized: retained.filter(({ name, size }) => !isSameSize(azure.machines.get(name)!.size, size)),
    started,
    stopped: stoppedMachines({ settings, initialization, azure, retained, changes, started }),
    machineRecords: recordsOf(observed, wanted, { retained, misbegun, current }),
    spec,
    federation,
    hardware,
    diskClasses: diskClasses.made,
    problems: [
      ...observed.missing,
      ...existingGroupProblems(settings, group),
      ...observed.foreignLocks.problems,
      ...refused.filter(({ isChanged }) => isChanged).map(({ problem }) => problem),
      ...policyProblems(observed.policies),
      ...observed.identity.problems,
      ...observed.registries.problems,
      ...observed.workloads.problems,
      ...observed.diskEncryption.problems,
      ...network.problems,
      ...unknownManifests.map((text) => text.replaceAll("\n", "\n    ")),
      ...offerProblems(machines, created, azure, offers, settings, connection),
      ...(lacksTags(settings, group) ? [] : initialization.problems),
      ...(exists
        ? [
            ...fixedProblems(settings, fixedInAzure(azure, settings)),
            ...(current === undefined ? changedProblems(begunOtherwise) : []),
            ...(initialization.isRestoring
              ? upgradeProblems(settings, azure, current)
              : versionProblems(observed, { controlPlanes, created, changes, current })),
          ]
        : []),
      ...addressProblems(
        machines,
        interfaceAddresses(azure.shown, settings),
        exists ? previous.placed : undefined,
        settings,
      ),
      ...subnetProblems(machines, azure.shown, settings),
      ...(keys.problem === undefined ? [] : [keys.problem]),
      ...network.letter,
    ],
    warnings: [
      ...lockWarnings(group),
      ...observed.foreignLocks.warnings,
      ...refused.filter(({ isChanged }) => !isChanged).map(({ problem }) => problem),
      ...policyWarnings(observed.policies),
      ...imageWarnings(created, offers.images, hardware, settings),
      ...ownRoutesWarnings(settings, created, hasArm, observed.network),
      ...network.warnings,
      ...(current?.diskDriver && !settings.diskDriver ? [withoutDriverText] : []),
      ...(current === undefined ? networkWarnings(settings, observed.network) : []),
    ],
    messages: [
      ...(current === undefined ? networkMessages(settings, observed.network) : []),
      ...(initialization.isRestoring ? [refreshText] : []),
      ...[keys, cas, accounts, issuers, federation].flatMap(({ message }) => message ?? []),
      ...(current === undefined ? diskClasses.leftOut : []).map(({ name, skuName, zone }) => {
        const place = `${zone === undefined ? "" : `zone ${zone} of `}${settings.location}`;
        return `StorageClass ${name} is left out: Azure offers this subscription no ${skuName} disks in ${place}`;
      }),
    ],
  };
}

/** A cluster that is being restored has no control planes that anything could be done to. */
function changesOf(
  { settings, azure }: Observed,
  { id, exists, problems, isRestoring }: Initialization,
  wanted: readonly WantedMachine[],
  current: PreviousOutputs | undefined,
): MachineChange[] {
  if (!exists || problems.length > 0) return [];
  return machineChanges(id, wanted, azure, current).filter(
    ({ machine }) => !isRestoring || !isControlPlaneName(settings, machine),
  );
}

function versionProblems(
  { settings, azure }: Observed,
  {
    controlPlanes,
    created,
    changes,
    current,
  }: Pick<Decision, "controlPlanes" | "changes" | "current"> & {
    readonly created: readonly MachinePlan[];
  },
): string[] {
  const remade = controlPlanes
    .filter((machine) => current?.machines[machine.name] !== undefined && created.includes(machine))
    .map(({ name }) => name);
  const isReplaced = (name: string): boolean =>
    !hasLeft(azure.machines.get(name)) &&
    changes.some(({ machine, action }) => machine === name && action === "replace");
  return upgradeProblems(settings, azure, current, {
    lost: remade.filter((name) => !isReplaced(name)),
    replaced: remade.filter(isReplaced),
    removed: leavingControlPlanes({ settings, controlPlanes, azure }),
  });
}

function recordsOf(
  { azure, now }: Observed,
  wanted: readonly WantedMachine[],
  {
    retained,
    misbegun,
    current,
  }: Pick<Decision, "retained" | "current"> & { readonly misbegun: readonly MachinePlan[] },
): Map<string, MachineRecord> {
  return new Map(
    wanted.map((one) => {
      const { name } = one.plan;
      const machine = azure.machines.get(name);
      const before = current?.machines[name];
      // A machine that was deleted is created anew, whether or not Pulumi's state knows that it is gone.
      const isThere = machine !== undefined && !hasLeft(machine) && !misbegun.includes(one.plan);
      // What an update that was killed has had a step do is not in Pulumi's state, which shows no change where that is taken back.
      const does = machine?.bootstrap?.configuration ?? one.configuration;
      const isRecorded = [one.configuration, before?.configuration].includes(does);
      const record: MachineRecord = {
        generation: one.generation,
        replacementInputs: one.replacementInputs,
        createdAt: (isThere ? (machine.createdAt ?? before?.createdAt) : undefined) ?? now,
        kubernetesVersion: one.kubernetesVersion,
        configuration: one.configuration,
        // The step also lets pods on a machine again.
        bootstrapRequestedAt:
          retained.includes(one.plan) && !machine?.isDrained && isRecorded
            ? bootstrapRequestTime(machine?.bootstrap, before?.bootstrapRequestedAt, now)
            : now,
      };
      return [name, record];
    }),
  );
}
