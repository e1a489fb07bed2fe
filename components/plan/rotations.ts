import type { AzureState } from "../azure/state";
import { encryptionFlag, encryptionTexts, isOurs, restoredKeys } from "../kubeadm/encryption";
import {
  accountKeyTexts,
  caTexts,
  isRewriting,
  keysOfTag,
  nextKeys,
  only,
  type RotationState,
  type RotationTexts,
  type ServiceAccountKeys,
  tagOf,
} from "../kubeadm/rotations";
import { entry, toRemove, toSet } from "../settings/problem";
import type { Settings } from "../settings/settings";
import { isControlPlaneName, type MachinePlan } from "../settings/topology";
import {
  clusterIdOf,
  isOfThisCluster,
  leavingMachines,
  type PreviousOutputs,
} from "./machine-changes";
import { type KubernetesApi, withApi } from "../cluster/kubernetes-api";
import { isHealthCheckSkipped } from "../settings/times";

/** As a machine's step shows what it was given. */
type Rotated = "encryptionKeys" | "cas" | "serviceAccountKeys";

interface RotationArgs {
  readonly what: Rotated;
  /** What the last update that ended well has left on every machine. */
  readonly now: RotationState | undefined;
  /** By the settings. */
  readonly wanted: number;
  readonly texts: RotationTexts;
  /** Why this update must not do a stage, of one of a cluster that is as the outputs say. */
  readonly whyNot: (previous: PreviousOutputs) => string | undefined;
  /** The initialization of the cluster, and its restoration. */
  readonly id: string;
  readonly azure: Pick<AzureState, "machines">;
  /** Of this initialization, maybe from before a restoration. */
  readonly previous: PreviousOutputs | undefined;
  /** The same, or those of an earlier initialization. */
  readonly outputs: PreviousOutputs | undefined;
}

/** The keys that an update leaves on every machine that needs them, and what is to be said of their change. */
interface PlannedRotation {
  readonly keys: RotationState;
  readonly message?: string;
}

/**
 * One stage towards the key that the settings want, if there can be one: until an update has ended well
 * nobody knows that all machines have what the cluster began with.
 *
 * A cluster in the place of a lost one begins with what signed there: that may be protected, so that the
 * engine would not take it out of the state.
 */
export function planRotation(args: RotationArgs): PlannedRotation {
  const { what, wanted, texts, id, azure, outputs } = args;
  const now = args.now ?? beganWith(id, azure, what) ?? only(outputs?.[what]?.keys[0] ?? wanted);
  const why = whyNot(args);
  if (why !== undefined) return { keys: now, message: texts.heldText(now, wanted, why) };
  const next = nextKeys(now, wanted);
  return { keys: next, message: texts.stageText(now, next, wanted) };
}

function whyNot({ id, previous, whyNot: more }: RotationArgs): string | undefined {
  if (previous === undefined) return "no update of this cluster has ended well yet";
  if (previous.initialization !== id) return "this update restores the cluster from a snapshot";
  return more(previous);
}

/** What the first control plane was given, whether or not its step ended well. */
function beganWith(
  id: string,
  { machines }: Pick<AzureState, "machines">,
  what: Rotated,
): RotationState | undefined {
  const tag = [...machines.values()].find(
    (machine) => isOfThisCluster(id, machine) && machine.bootstrap?.[what] !== undefined,
  )?.bootstrap?.[what];
  return tag === undefined ? undefined : keysOfTag(tag);
}

export interface CasArgs {
  readonly settings: Pick<Settings, "clusterName" | "caGeneration" | "kubernetesVersion">;
  /** The initialization of the cluster, and its restoration. */
  readonly id: string;
  readonly controlPlanes: readonly MachinePlan[];
  readonly workers: readonly MachinePlan[];
  /** Machines that this update makes. */
  readonly created: readonly MachinePlan[];
  readonly azure: Pick<AzureState, "machines">;
  /** Of this initialization, maybe from before a restoration. */
  readonly previous: PreviousOutputs | undefined;
  /** The same, or those of an earlier initialization. */
  readonly outputs: PreviousOutputs | undefined;
}

/** The CAs that an update leaves on every machine, and what is to be said of their change. */
interface PlannedCas {
  readonly cas: RotationState;
  readonly message?: string;
}

/** One stage towards the CA that the settings want, unless this update does something else to the control plane. */
export function planCas(args: CasArgs): PlannedCas {
  const { keys: cas, message } = planRotation({
    ...args,
    what: "cas",
    now: args.previous?.cas,
    wanted: args.settings.caGeneration,
    texts: caTexts,
    whyNot: (previous) => whyCasStay(args, previous),
  });
  return { cas, message };
}

function whyCasStay(args: CasArgs, previous: PreviousOutputs): string | undefined {
  const { settings, id, controlPlanes, workers, created, azure } = args;
  const { kubernetesVersion } = settings;
  if (Object.values(previous.machines).some((one) => one.kubernetesVersion !== kubernetesVersion)) {
    return `this update upgrades Kubernetes to ${kubernetesVersion}`;
  }
  // A machine that cannot go yet goes later by its kubeconfig of now, which has to trust the API then.
  const leaving = new Set([
    ...leavingControlPlanes(args),
    ...leavingMachines(id, [...controlPlanes, ...workers], azure, previous),
  ]);
  if (leaving.size > 0) return `this update removes ${[...leaving].join(", ")}`;
  // It asks the API by a name behind which are other control planes, of the stage before.
  const made = controlPlanes.filter((one) => created.includes(one)).map(({ name }) => name);
  return made.length > 0 ? `this update makes ${made.join(", ")}` : undefined;
}

export interface KeysArgs {
  readonly settings: Pick<Settings, "clusterName" | "kubeadm" | "encryptionKeyGeneration">;
  /** The initialization of the cluster, and its restoration. */
  readonly id: string;
  readonly controlPlanes: readonly MachinePlan[];
  readonly azure: Pick<AzureState, "machines">;
  /** Of this initialization, maybe from before a restoration. */
  readonly previous: PreviousOutputs | undefined;
  /** The same, or those of an earlier initialization, whose snapshots may be restored. */
  readonly outputs: PreviousOutputs | undefined;
}

/** The keys of Secrets that an update leaves on every control plane. */
interface PlannedKeys {
  /** Nothing where the operator has a configuration of their own. */
  readonly encryptionKeys?: RotationState;
  /** What is to be said of the change of a key that is under way. */
  readonly message?: string;
  /** Why this update must not begin: no API server could read the Secrets that there are. */
  readonly problem?: string;
}

/**
 * One stage towards the key that the settings want, unless a control plane leaves at the end of this update: it
 * encrypts with the old key until then. What is restored from a snapshot may be encrypted with any key that the
 * cluster ever had.
 */
export function planEncryptionKeys(args: KeysArgs): PlannedKeys {
  const { settings, id, azure, previous, outputs } = args;
  const { encryptionKeyGeneration: wanted, kubeadm } = settings;
  const began = previous === undefined ? beganWith(id, azure, "encryptionKeys") : undefined;
  if (!isOurs(kubeadm.apiServerExtraArgs)) {
    return { problem: leavingProblem(previous?.encryptionKeys ?? began) };
  }
  if (previous?.ownEncryption && wanted !== 0) return { problem: returningProblem() };
  const now =
    previous === undefined ? afterOthers(began ?? only(wanted), outputs) : keysOf(previous);
  if (id !== (previous?.initialization ?? clusterIdOf(id))) {
    const keys = restoredKeys(now);
    return { encryptionKeys: keys, message: encryptionTexts.stageText(now, keys, wanted) };
  }
  const leaving = leavingControlPlanes(args);
  const { keys, message } = planRotation({
    ...args,
    what: "encryptionKeys",
    now,
    wanted,
    texts: encryptionTexts,
    whyNot: () => (leaving.length > 0 ? `this update removes ${leaving.join(", ")}` : undefined),
  });
  return { encryptionKeys: keys, message };
}

/** With a configuration of the operator's own a cluster has none. */
const keysOf = ({ encryptionKeys, pastEncryptionKeys }: PreviousOutputs): RotationState =>
  encryptionKeys ?? only(0, pastEncryptionKeys);

/** Those of a cluster that has taken another one's place. */
function afterOthers({ keys }: RotationState, outputs: PreviousOutputs | undefined): RotationState {
  const others = outputs === undefined ? [] : restoredKeys(keysOf(outputs)).keys;
  return { keys, rewritten: true, past: others.filter((key) => !keys.includes(key)) };
}

/** What is remembered of its keys, and of an earlier cluster's, while the operator has a configuration of their own. */
export const pastKeys = (outputs: PreviousOutputs | undefined): readonly number[] | undefined =>
  outputs && restoredKeys(keysOf(outputs)).keys.filter((key) => key !== 0);

const own = entry("kubeadm.apiServerExtraArgs", encryptionFlag);

/** The operator's configuration takes the place of keys that it does not have. */
function leavingProblem(had: RotationState | undefined): string | undefined {
  const unknown = had?.keys.filter((key) => key !== 0) ?? [];
  if (unknown.length === 0) return undefined;
  return (
    `${own} names a configuration of your own, and Secrets are encrypted with ${unknown.map(encryptionTexts.nameOf).join(", ")} of this program, which it does ` +
    `not have: no API server could read them. Take it back (${toRemove(own)}) and have them stored in clear first: ` +
    `${toSet("encryptionKeyGeneration", 0)}, then pulumi up until it says nothing of the key. Then set your own again`
  );
}

/** Of what the operator's configuration has encrypted, this program knows no key. */
const returningProblem = (): string =>
  `${own} is gone, and Secrets may be encrypted with the keys of that configuration, which this program does not have: no API server could ` +
  "read them. Put it back, with identity as its first provider, and store all Secrets once more (kubectl get secrets -A -o json | kubectl replace -f -). " +
  `When all are in clear, take it away and say so (${toSet("encryptionKeyGeneration", 0)}), run pulumi up, and set another key after that`;

/** Control planes that this update removes. */
export const leavingControlPlanes = ({
  settings,
  controlPlanes,
  azure,
}: {
  readonly settings: Pick<Settings, "clusterName">;
  readonly controlPlanes: readonly MachinePlan[];
  readonly azure: Pick<AzureState, "machines">;
}): string[] =>
  [...azure.machines.keys()].filter(
    (name) =>
      isControlPlaneName(settings, name) && !controlPlanes.some((stays) => stays.name === name),
  );

/**
 * A kubelet gives a pod another token when the one that it has is a day old, or sooner
 * (pkg/kubelet/token). The rest is for the update itself, whose last API server signs with the key of
 * before until its step: each control plane may wait for its turn, be drained, and take 90 minutes.
 */
const hoursUntilRenewed = ({
  controlPlaneCount,
  drainMinutes,
}: ServiceAccountKeysArgs["settings"]): number =>
  24 + Math.max(12, Math.ceil((controlPlaneCount * (2 * drainMinutes + 90)) / 60));

export interface ServiceAccountKeysArgs {
  readonly settings: Pick<
    Settings,
    "clusterName" | "controlPlaneCount" | "drainMinutes" | "serviceAccountKeyGeneration"
  >;
  /** The initialization of the cluster, and its restoration. */
  readonly id: string;
  readonly controlPlanes: readonly MachinePlan[];
  readonly azure: Pick<AzureState, "machines">;
  /** Of this initialization, maybe from before a restoration. */
  readonly previous: PreviousOutputs | undefined;
  /** The same, or those of an earlier initialization. */
  readonly outputs: PreviousOutputs | undefined;
  readonly legacyTokens: LegacyTokens;
  /** When this program started, as ISO 8601. */
  readonly now: string;
}

/** The keys that an update leaves on every control plane, and what is to be said of their change. */
interface PlannedServiceAccountKeys {
  readonly serviceAccountKeys: ServiceAccountKeys;
  readonly message?: string;
}

/**
 * One stage towards the key that the settings want. Control planes of two stages that follow each other
 * admit each other's tokens, so that an update may make, remove or upgrade some meanwhile. One that could not
 * leave in an earlier update is of the stage of then.
 */
export function planServiceAccountKeys(args: ServiceAccountKeysArgs): PlannedServiceAccountKeys {
  const { settings, previous, now } = args;
  const current = previous?.serviceAccountKeys;
  const behind = leavingControlPlanes(args).filter((name) => {
    const given = args.azure.machines.get(name)!.bootstrap?.serviceAccountKeys;
    return current !== undefined && given !== tagOf(current);
  });
  const { keys, message } = planRotation({
    ...args,
    what: "serviceAccountKeys",
    now: current,
    wanted: settings.serviceAccountKeyGeneration,
    texts: accountKeyTexts,
    whyNot: () =>
      behind.length > 0
        ? `this update removes ${behind.join(", ")}, which may not have all of its keys`
        : undefined,
  });
  if (isRewriting(keys)) {
    // Until it has left, such a one may sign with the key before.
    const since = behind.length > 0 && { signingSince: now };
    return { serviceAccountKeys: { signingSince: now, ...keys, ...since }, message };
  }
  if (current === undefined || !isRewriting(current)) return { serviceAccountKeys: keys, message };
  const kept = keptText(current, args);
  return kept === undefined
    ? { serviceAccountKeys: keys, message }
    : { serviceAccountKeys: current, message: kept };
}

/** Why a key that signs no more has to stay: there are tokens of it. */
function keptText(
  { keys, signingSince }: ServiceAccountKeys,
  {
    settings,
    now,
    legacyTokens,
  }: Pick<ServiceAccountKeysArgs, "settings" | "now" | "legacyTokens">,
): string | undefined {
  const names = keys.slice(1).map(accountKeyTexts.nameOf).join(", ");
  const until = Date.parse(signingSince ?? now) + hoursUntilRenewed(settings) * 3_600_000;
  if (Date.parse(now) < until) {
    return (
      `pods may have tokens of ${names} until ${new Date(until).toISOString()}, so that this update keeps it. ` +
      "Run pulumi up again after that"
    );
  }
  if ("unknown" in legacyTokens) {
    return (
      `Secrets may have tokens of ${names}, so that this update keeps it: ${legacyTokens.unknown}. ` +
      "Run pulumi up again where the API answers"
    );
  }
  const { secrets } = legacyTokens;
  return secrets.length === 0
    ? undefined
    : `tokens of ${names} that never end are in Secrets (${secrets.join(", ")}), so that this update keeps it. Give whoever uses one ` +
        "another one, delete the Secret (kubectl delete secret --namespace NAMESPACE NAME), and run pulumi up again";
}

/** Secrets with a token of a key that signs no more, as `namespace/name`; or why nobody knows. */
export type LegacyTokens = { readonly secrets: readonly string[] } | { readonly unknown: string };

interface TokenSecret {
  readonly metadata: { readonly namespace: string; readonly name: string };
  readonly data?: { readonly token?: string };
}

interface LegacyTokensArgs {
  readonly settings: Pick<Settings, "skipHealthCheckUntil">;
  readonly previous: PreviousOutputs | undefined;
  /** From the stack's outputs. */
  readonly kubeconfig: string | undefined;
  /** When this program started, as ISO 8601. */
  readonly now: string;
}

const ofType = "fieldSelector=type%3Dkubernetes.io%2Fservice-account-token";

/** By which key a token is signed, as Kubernetes names keys: by a hash. */
const keyOf = (token: string): string | undefined =>
  (JSON.parse(Buffer.from(token.split(".")[0]!, "base64url").toString()) as { kid?: string }).kid;

/**
 * Tokens in Secrets never end, and the controller manager signs none anew. They are looked for only
 * where an older key is to go next, and where the API may be asked.
 */
export async function getLegacyTokens(args: LegacyTokensArgs): Promise<LegacyTokens> {
  const { settings, previous, kubeconfig, now } = args;
  const keys = previous?.serviceAccountKeys;
  const isSkipped = isHealthCheckSkipped(settings, now);
  if (keys === undefined || !isRewriting(keys) || isSkipped || kubeconfig === undefined) {
    return { secrets: [] };
  }
  return withApi(kubeconfig, signedBefore).then(
    (secrets) => ({ secrets }),
    (error: Error) => ({ unknown: error.message }),
  );
}

async function signedBefore(api: KubernetesApi): Promise<string[]> {
  const secrets = await api.list<TokenSecret>(`/api/v1/secrets?${ofType}`);
  if (secrets.length === 0) return [];
  const signing = keyOf(await newToken(api));
  return secrets
    .filter(({ data }) => {
      const token = data?.token && Buffer.from(data.token, "base64").toString();
      return token && keyOf(token) !== signing;
    })
    .map(({ metadata: { namespace, name } }) => `${namespace}/${name}`);
}

/** Of an account that may do nothing, and for the ten minutes that are the least. */
async function newToken(api: KubernetesApi): Promise<string> {
  const answer = await api.create("/api/v1/namespaces/kube-public/serviceaccounts/default/token", {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { expirationSeconds: 600 },
  });
  return (JSON.parse(answer) as { status: { token: string } }).status.token;
}
