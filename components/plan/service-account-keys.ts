import type { AzureState } from "../azure/state";
import { type KubernetesApi, withApi } from "../cluster/kubernetes-api";
import { accountKeyTexts, isRewriting, type ServiceAccountKeys } from "../kubeadm/rotations";
import type { Settings } from "../settings/settings";
import { isHealthCheckSkipped } from "../settings/times";
import type { PreviousOutputs } from "./machine-changes";
import { planRotation } from "./rotations";

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
  readonly azure: Pick<AzureState, "machines">;
  /** Of this initialization, maybe from before a restoration. */
  readonly previous: PreviousOutputs | undefined;
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
 * admit each other's tokens, so that an update may make, remove or upgrade some meanwhile.
 */
export function planServiceAccountKeys(args: ServiceAccountKeysArgs): PlannedServiceAccountKeys {
  const { settings, previous, now } = args;
  const current = previous?.serviceAccountKeys;
  const { keys, message } = planRotation({
    ...args,
    what: "serviceAccountKeys",
    now: current,
    wanted: settings.serviceAccountKeyGeneration,
    texts: accountKeyTexts,
    whyNot: () => undefined,
  });
  if (isRewriting(keys)) return { serviceAccountKeys: { signingSince: now, ...keys }, message };
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
