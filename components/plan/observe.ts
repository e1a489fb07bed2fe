import * as pulumi from "@pulumi/pulumi";

import { cloudProviderProblems } from "../add-ons/manifests/cloud-provider-images";
import { findManifests, manifestsFor } from "../add-ons/manifests/manifests";
import { apiName } from "../api-server";
import {
  type AddedIdentity,
  getAddedIdentities,
  getExistingIdentity,
  getWorkloadClients,
  type IdentityAnswer,
  type WorkloadClients,
} from "../azure/identities";
import { assignedScopeProblems } from "../azure/assigned-scopes";
import { type AzureConnection, connect } from "../azure/resource-manager";
import { type DiskEncryptionAnswer, getDiskEncryption } from "../azure/disk-classes";
import { type ExistingNetwork, getExistingNetwork } from "../azure/existing-network";
import { getForeignLocks, getGroupLocks, type Lock, type LocksAnswer } from "../azure/locks";
import { placed, type Places } from "../azure/free-addresses";
import { lackingRights, neededRights } from "../azure/lacking-rights";
import { hardwareOf } from "../azure/hardware";
import { getOffers, type Offers } from "../azure/offers";
import { getPolicyViolations, type PolicyAnswer } from "../azure/policy-restrictions";
import { getRegistries, type RegistriesAnswer } from "../azure/registries";
import { groupId } from "../azure/resource-names";
import { ownIdentityProblems } from "../azure/rights";
import { type AzureAnswer, getAzureState } from "../azure/state";
import { stackName } from "../azure/stack-tag";
import { accountProblems, providerProblems, subscriptionProblems } from "../azure/subscription";
import { throughProxy } from "../kubeconfig";
import { roleProblems, takenRoles } from "../roles";
import type { Settings } from "../settings/settings";
import { machinesOf } from "../settings/topology";
import { tokenIssuerOf } from "../token-issuer";
import type { PlacedMachine } from "./addresses";
import { askBackend, refuse } from "./engine";
import { fixedProblems, subscriptionProblem } from "./fixed-settings";
import { getLegacyTokens, type LegacyTokens } from "./rotations";
import { markLeft } from "./left-machines";
import type { PreviousOutputs } from "./machine-changes";
import { plannedResources } from "./planned-resources";
import { newKinds } from "./policies";
import { getLoginProblem } from "./federation";
import { isOtherMinor } from "./upgrade";

/** What the last update that succeeded left in this stack's outputs. */
export interface Previous {
  readonly outputs?: PreviousOutputs;
  /** With the proxy of now. */
  readonly kubeconfig?: string;
  /** Its machines, and where they are. */
  readonly placed: readonly PlacedMachine[];
}

/** All that is read before anything is decided. */
export interface Observed extends Places {
  /** When this program started, as ISO 8601. */
  readonly now: string;
  readonly settings: Settings;
  readonly connection: AzureConnection;
  readonly apiName: string;
  readonly previous: Previous;
  readonly azure: AzureAnswer;
  /** On the cluster's resource group, and above it. */
  readonly locks: readonly Lock[];
  /** On what others have made. */
  readonly foreignLocks: LocksAnswer;
  /** Of machines, and not this login's to name. */
  readonly addedIdentities: readonly AddedIdentity[];
  readonly identity: IdentityAnswer;
  readonly registries: RegistriesAnswer;
  readonly workloads: WorkloadClients;
  readonly diskEncryption: DiskEncryptionAnswer;
  /** The network of the subnets that the settings name. */
  readonly network?: ExistingNetwork;
  readonly offers: Offers;
  /** Policies that would refuse what is new. */
  readonly policies: PolicyAnswer;
  /** Upstream's manifests by path; or why they cannot be had. */
  readonly manifests: ReadonlyMap<string, string> | string;
  readonly legacyTokens: LegacyTokens;
  /** Why the cluster's identity has to stay on control planes. */
  readonly loginProblem?: string;
  /** What the subscription and the login lack for what is new, and a new stack or minor also of images. */
  readonly missing: readonly string[];
  /** What others have to do beside an update. */
  readonly warnings: readonly string[];
}

/**
 * Reads the previous outputs and, at once, everything of Azure and upstream that a plan depends on.
 *
 * @throws RunError where settings or subscription are those of another cluster, or Azure does not answer
 */
export async function observe(settings: Settings): Promise<Observed> {
  const now = new Date().toISOString();
  const previous = await readPreviousOutputs(settings);
  refuse(fixedProblems(settings, previous.outputs?.settings));
  const connection = await connect(settings);
  const { subscriptionId } = connection;
  refuse(subscriptionProblem(subscriptionId, previous.outputs?.subscriptionId));
  const api = apiName(settings, subscriptionId);
  const machines = machinesOf(settings);
  const found = getAzureState(settings, previous.outputs !== undefined, connection);
  const offered = getOffers(settings, connection);
  const existing = getExistingIdentity("identityId", settings.identityId, connection);
  const network = getExistingNetwork(settings, connection);
  const issuer = tokenIssuerOf(settings, subscriptionId);
  const workloadClients = getWorkloadClients(settings, issuer, connection);
  const pulled = found.then(({ shown }) => getRegistries(settings, shown, connection));
  const fresh = Promise.all([found, offered]).then(([answer, { skus }]) => {
    const hardware = hardwareOf(machines, { skus });
    return newKinds(plannedResources(settings, machines, subscriptionId, hardware), answer);
  });
  const [
    azure,
    locks,
    missing,
    identity,
    diskEncryption,
    lacking,
    subnets,
    places,
    offers,
    policies,
    manifests,
    legacyTokens,
    loginProblem,
    workloads,
    registries,
    foreignLocks,
    addedIdentities,
  ] = await Promise.all([
    found.then((answer) =>
      markLeft({ settings, machines, azure: answer, kubeconfig: previous.kubeconfig, now }),
    ),
    found.then(({ groupState }) => getGroupLocks(settings, groupState !== undefined, connection)),
    Promise.all([found, fresh, network]).then(async ([answer, resources, one]) => {
      const { isBegun, shown } = answer;
      const problems = await Promise.all([
        providerProblems(resources, shown, connection),
        assignedScopeProblems(settings, shown, one, connection),
        accountProblems(settings, answer, connection),
        ...(isBegun
          ? [ownIdentityProblems(settings, shown, connection), roleProblems(settings, connection)]
          : [subscriptionProblems(settings, shown, connection), takenRoles(settings, connection)]),
        ...(!isBegun || isOtherMinor(settings, answer, previous.outputs)
          ? [cloudProviderProblems(settings)]
          : []),
      ]);
      return problems.flat();
    }),
    existing,
    getDiskEncryption(settings, connection),
    Promise.all([existing, found, network]).then(
      ([{ identity }, { groupState, isBegun }, one]) =>
        identity &&
        lackingRights(
          settings,
          connection,
          {
            ...{ id: settings.identityId, principalId: identity.principalId },
            needed: neededRights(settings, subscriptionId, one),
            users:
              "The cloud provider, the disk driver and etcd's snapshots need them, and try again until they have them",
          },
          { isGroupThere: groupState !== undefined, isBegun },
        ),
    ),
    network,
    Promise.all([network, found]).then(([one, { shown }]) =>
      placed(
        machines,
        {
          ...{ settings, network: one, shown },
          before: { machines: previous.placed, apiAddress: previous.outputs?.apiAddress },
        },
        connection,
      ),
    ),
    offered,
    Promise.all([found, fresh]).then(([{ groupLocation }, resources]) => {
      const scope =
        groupLocation === undefined
          ? `/subscriptions/${subscriptionId}`
          : groupId(settings, subscriptionId);
      return getPolicyViolations(resources, scope, connection);
    }),
    found.then(({ isBegun }) =>
      findManifests(manifestsFor(settings), { mirror: settings.mirror, isBegun }).catch(
        ({ message }: pulumi.RunError) => message,
      ),
    ),
    getLegacyTokens({
      settings,
      previous: previous.outputs,
      kubeconfig: previous.kubeconfig,
      now,
    }),
    found.then((answer) =>
      getLoginProblem({
        ...{ settings, previous: previous.outputs, azure: answer, now },
        kubeconfig: previous.kubeconfig,
      }),
    ),
    workloadClients,
    pulled,
    Promise.all([found, network, pulled, workloadClients]).then(
      ([{ shown }, one, { registries: all }, { isWritten }]) =>
        getForeignLocks(settings, { network: one, registries: all, shown, isWritten }, connection),
    ),
    found.then((answer) => getAddedIdentities(settings, answer, previous.outputs, connection)),
  ]);
  return {
    ...{ now, settings, connection, apiName: api, previous, azure, identity, offers, manifests },
    ...{ policies, locks, foreignLocks, network: subnets, ...places, missing, legacyTokens },
    ...{ loginProblem, workloads, diskEncryption, registries, addedIdentities },
    warnings: [...(lacking === undefined ? [] : [lacking]), ...registries.warnings],
  };
}

/** Those that the next update reads; see outputs.ts. */
interface StackOutputs {
  readonly cluster?: PreviousOutputs;
  readonly kubeconfig?: string;
  readonly machines?: readonly PlacedMachine[];
}

/**
 * Read by a function, not by a StackReference: that would copy all outputs into the state, and could
 * not be tried again.
 */
async function readPreviousOutputs({ apiProxy }: Pick<Settings, "apiProxy">): Promise<Previous> {
  const name = stackName();
  const outputs = await askBackend<StackOutputs>("readStackOutputs", { name });
  return {
    outputs: outputs?.cluster,
    kubeconfig: outputs?.kubeconfig && throughProxy(outputs.kubeconfig, apiProxy),
    placed: outputs?.machines ?? [],
  };
}
